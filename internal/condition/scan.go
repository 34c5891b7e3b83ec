package condition

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// A document is the data of an event, of which only what conditions ask for is read:
// a scan finds out that it is JSON and where the members of the object lie that
// conditions name; a value is read when it is first asked for. All is as decode gives
// it, which reads the rest: what is inside of lists and objects, escapes, and the whole
// where a condition asks for event itself.
type document struct {
	text    string
	schema  *schemaType
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

// wholeDocument is data that were decoded.
func wholeDocument(data any) document { return document{whole: data, isWhole: true} }

// scan makes d the document of data. names has the numbers of the members, of which
// there are size.
func (d *document) scan(data []byte, s *schemaType, names map[string]*pathUse, size int) error {
	clear(d.members)
	if cap(d.members) < size {
		d.members = make([]member, size+size/2)
	}
	*d = document{schema: s, members: d.members[:size]}
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
				d.members[use.index] = member{from: uint32(from), to: uint32(r.at), plain: plain}
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

// all returns the whole, decoded.
func (d *document) all() any {
	if !d.isWhole {
		d.whole, _ = decodeData([]byte(d.text), d.schema) // the scan found it good
		d.isWhole = true
	}
	return d.whole
}

// follow leads to the value at p; absent where there is none.
func (d *document) follow(p *path) (any, valueState) {
	switch {
	case d.isWhole || len(p.steps) == 0:
		return followSteps(p.steps, d.all())
	case !d.has(p):
		return nil, absent
	}
	m := &d.members[p.member]
	if !m.read {
		m.value, m.read = readValue(d.text[m.from:m.to], m.plain, shapeOfField(d.schema, p.steps[0])), true
	}
	return followSteps(p.steps[1:], m.value)
}

// has reports whether the object, which d is, has the first step of p.
func (d *document) has(p *path) bool { return d.members[p.member].to > 0 }

// readValue reads one JSON value that was found good.
func readValue(text string, plain bool, s *schemaType) any {
	switch c := text[0]; {
	case c == '"' && plain:
		return text[1 : len(text)-1]
	case c == '-' || isDigit(c):
		return parseNumber(text, s)
	case text == "true", text == "false":
		return text == "true"
	case text == "null":
		return nil
	}
	v, _ := decodeData([]byte(text), s)
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
	n := numberLength(r.text[r.at:])
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

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

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
