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

// DecodeData decodes event data into nil, bool, int64, float64, string, []any and map[string]any. A
// number becomes a float64 where the schema says "number" and an int64 where it says "integer".
// Elsewhere it becomes an int64 if it has neither fraction nor exponent and fits, else a float64. A
// number beyond the range of a double becomes infinite. Empty data is null.
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

// applySchema replaces the numbers of v in place by numbers of the types in s.
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
	f, _ := strconv.ParseFloat(text, 64) // the value is infinite if it is out of range
	if k == lang.KindInt && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}

// A Document is the data of an event. Scan verifies that it is JSON and finds the members of the
// object that conditions use; each is decoded when a condition first reads it. Lists, objects and
// texts with escapes are decoded by DecodeData, and so is the whole where a condition reads event
// itself.
type Document struct {
	text    string
	schema  *lang.SchemaType
	object  bool
	members []member // by the numbers in paths
	whole   any      // the decoded data
	isWhole bool
}

// A member is a member of the object that some condition uses.
type member struct {
	from, to uint32 // position of its value in the text; to is 0 if the member is missing
	plain    bool   // a text of ASCII without escapes
	read     bool
	value    any
}

// WholeDocument returns a document of decoded data.
func WholeDocument(data any) Document { return Document{whole: data, isWhole: true} }

// Scan makes d the document of data. names maps the members that conditions use to numbers below
// size.
func (d *Document) Scan(data []byte, s *lang.SchemaType, names map[string]*PathUse, size int) error {
	clear(d.members)
	if cap(d.members) < size {
		d.members = make([]member, size+size/2)
	}
	*d = Document{schema: s, members: d.members[:size]}
	if len(data) == 0 {
		d.isWhole = true // empty data is null
		return nil
	}
	d.text = string(data)
	r := jsonScanner{text: d.text}
	r.space()
	var ok bool
	if d.object = r.is('{'); d.object {
		ok = r.object(1, func(name string, from int, plain bool) {
			if use := names[name]; use != nil { // the last of several members with the same name counts
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
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the event data is not a single JSON value", Pointer: "/data"}
}

// All returns all data, decoded.
func (d *Document) All() any {
	if !d.isWhole {
		d.whole, _ = DecodeData([]byte(d.text), d.schema) // Scan has verified it
		d.isWhole = true
	}
	return d.whole
}

// Follow returns the value at p.
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

// has reports whether the object has the first step of p.
func (d *Document) has(p *Path) bool { return d.members[p.Member].to > 0 }

// readValue decodes one valid JSON value.
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

// maxDepth is the deepest nesting that encoding/json accepts.
const maxDepth = 10_000

// A jsonScanner walks over JSON (RFC 8259) and stops at an error.
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

// value walks over a value at a depth. plain reports whether it is a text of ASCII without escapes.
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

// string walks over a string.
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

// object walks over an object and calls visit with the name of each member, the position of its
// value, and whether that is plain. The value ends at the current position.
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
	_ = json.Unmarshal([]byte(text), &name) // string has verified it
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
