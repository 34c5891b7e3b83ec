package expr

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// DecodeData reads event data into nil, bool, int64, float64, string, []any and
// map[string]any. A number becomes a float64 where the schema says "number" and
// an int64 where it says "integer"; where it says nothing, an int64 if it is
// written without fraction and exponent and fits, else a float64. What is
// beyond the range of a double is infinite. No data is null.
func DecodeData(data json.RawMessage, s *lang.SchemaType) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = more
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
		}
	}
	if err != nil {
		return nil, notJSON()
	}
	return applySchema(v, s), nil
}

// applySchema replaces the numbers of v, in place, by what s says they are.
func applySchema(v any, s *lang.SchemaType) any {
	switch x := v.(type) {
	case json.Number:
		return parseNumber(string(x), s)
	case map[string]any:
		for name, member := range x {
			switch member.(type) {
			case json.Number, map[string]any, []any:
				x[name] = applySchema(member, shapeOfField(s, name))
			}
		}
	case []any:
		var items *lang.SchemaType
		if s != nil {
			items = s.Items
		}
		for i, member := range x {
			x[i] = applySchema(member, items)
		}
	}
	return v
}

func shapeOfField(s *lang.SchemaType, name string) *lang.SchemaType {
	if s == nil {
		return nil
	}
	return s.Fields[name]
}

func parseNumber(text string, s *lang.SchemaType) any {
	k := lang.KindAny
	if s != nil {
		k = s.Kind
	}
	if k != lang.KindDouble {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range gives the infinity
	if k == lang.KindInt && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}

// A Document is the data of an event, of which only what conditions ask for is read:
// a scan finds out that it is JSON and where the members of the object lie that
// conditions name; a value is read when it is first asked for. All is as decode gives
// it, which reads the rest: what is inside of lists and objects, escapes, and the whole
// where a condition asks for event itself.
type Document struct {
	text    string
	schema  *lang.SchemaType
	object  bool
	members []member // by number, as paths give them
	whole   any      // decoded
	isWhole bool
}

// A member is one of the object's that some condition names.
type member struct {
	from, to uint32 // of its value in the text; to is 0 where it is not there
	plain    bool   // of a text: neither escapes nor anything beyond ASCII
	read     bool
	value    any
}

// WholeDocument is data that were decoded.
func WholeDocument(data any) Document { return Document{whole: data, isWhole: true} }

// Scan makes d the document of data. names has the numbers of the members, of which
// there are size.
func (d *Document) Scan(data []byte, s *lang.SchemaType, names map[string]*PathUse, size int) error {
	clear(d.members)
	if cap(d.members) < size {
		d.members = make([]member, size+size/2)
	}
	*d = Document{schema: s, members: d.members[:size]}
	if len(data) == 0 {
		d.isWhole = true // null
		return nil
	}
	d.text = string(data)
	r := jsonScanner{text: d.text}
	r.space()
	var ok bool
	if d.object = r.is('{'); d.object {
		ok = r.object(1, func(name string, from int, plain bool) {
			if use := names[name]; use != nil { // of equal names the last counts
				d.members[use.Index] = member{from: uint32(from), to: uint32(r.at), plain: plain}
			}
		})
	} else {
		_, ok = r.value(0)
	}
	if r.space(); !ok || r.at < len(r.text) {
		return notJSON()
	}
	return nil
}

func notJSON() error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the event's data is not one JSON value", Pointer: "/data"}
}

// All returns the whole, decoded.
func (d *Document) All() any {
	if !d.isWhole {
		d.whole, _ = DecodeData([]byte(d.text), d.schema) // the scan found it good
		d.isWhole = true
	}
	return d.whole
}

// Follow leads to the value at p; absent where there is none.
func (d *Document) Follow(p *Path) (any, ValueState) {
	switch {
	case d.isWhole || len(p.Steps) == 0:
		return FollowSteps(p.Steps, d.All())
	case !d.has(p):
		return nil, absent
	}
	m := &d.members[p.Member]
	if !m.read {
		m.value, m.read = readValue(d.text[m.from:m.to], m.plain, shapeOfField(d.schema, p.Steps[0])), true
	}
	return FollowSteps(p.Steps[1:], m.value)
}

// has reports whether the object, which d is, has the first step of p.
func (d *Document) has(p *Path) bool { return d.members[p.Member].to > 0 }

// readValue reads one JSON value that was found good.
func readValue(text string, plain bool, s *lang.SchemaType) any {
	switch c := text[0]; {
	case c == '"' && plain:
		return text[1 : len(text)-1]
	case c == '-' || lang.IsDigit(c):
		return parseNumber(text, s)
	case text == "true", text == "false":
		return text == "true"
	case text == "null":
		return nil
	}
	v, _ := DecodeData([]byte(text), s)
	return v
}

// maxDepth is how deep encoding/json follows lists and objects.
const maxDepth = 10_000

// A scanner walks over JSON (RFC 8259) and stops where it is none.
type jsonScanner struct {
	text string
	at   int
}

func (r *jsonScanner) space() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\t' || r.text[r.at] == '\r') {
		r.at++
	}
}

func (r *jsonScanner) is(c byte) bool { return r.at < len(r.text) && r.text[r.at] == c }

func (r *jsonScanner) consume(c byte) bool {
	if !r.is(c) {
		return false
	}
	r.at++
	return true
}

// value walks over a value inside of depth others. plain is that of a text.
func (r *jsonScanner) value(depth int) (plain, ok bool) {
	if r.at == len(r.text) {
		return false, false
	}
	switch c := r.text[r.at]; c {
	case '"':
		return r.string()
	case '{':
		return false, depth < maxDepth && r.object(depth+1, nil)
	case '[':
		return false, depth < maxDepth && r.list(depth+1)
	case 't':
		return false, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return false, r.word("null")
	}
	n := lang.NumberLength(r.text[r.at:])
	r.at += n
	return false, n > 0
}

func (r *jsonScanner) word(word string) bool {
	ok := strings.HasPrefix(r.text[r.at:], word)
	r.at += len(word)
	return ok
}

// string walks over a text.
func (r *jsonScanner) string() (plain, ok bool) {
	plain = true
	for i := r.at + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			return plain, true
		case c == '\\':
			plain = false
			if i++; i == len(r.text) {
				return false, false
			}
			switch r.text[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(r.text) || !isHex(r.text[i]) {
						return false, false
					}
				}
			default:
				return false, false
			}
		case c < ' ':
			return false, false
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return false, false
}

func isHex(c byte) bool { return lang.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// object walks over an object, and tells of each member its name, where its value
// begins, and whether that is plain. The value ends where r is.
func (r *jsonScanner) object(depth int, visit func(name string, from int, plain bool)) bool {
	r.at++
	r.space()
	if r.consume('}') {
		return true
	}
	for {
		from := r.at
		if !r.is('"') {
			return false
		}
		plain, ok := r.string()
		if !ok {
			return false
		}
		name := r.text[from+1 : r.at-1]
		if r.space(); !r.consume(':') {
			return false
		}
		r.space()
		value := r.at
		isPlain, ok := r.value(depth)
		if !ok {
			return false
		}
		if visit != nil {
			if !plain {
				name = unquote(r.text[from : from+len(name)+2])
			}
			visit(name, value, isPlain)
		}
		if r.space(); r.consume('}') {
			return true
		}
		if !r.consume(',') {
			return false
		}
		r.space()
	}
}

func unquote(text string) (name string) {
	_ = json.Unmarshal([]byte(text), &name) // it was walked over
	return name
}

func (r *jsonScanner) list(depth int) bool {
	r.at++
	r.space()
	if r.consume(']') {
		return true
	}
	for {
		if _, ok := r.value(depth); !ok {
			return false
		}
		if r.space(); r.consume(']') {
			return true
		}
		if !r.consume(',') {
			return false
		}
		r.space()
	}
}
