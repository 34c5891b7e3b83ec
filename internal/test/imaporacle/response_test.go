//go:build peers

package imaporacle

import (
	"fmt"
	"strconv"
	"strings"
)

// A response is one response of a server. The values of lists are []any, those of strings are quoted, and atoms are as they were sent.
type response struct {
	tag    string // "*" for an untagged one
	number int    // of EXISTS, RECENT, EXPUNGE and FETCH; otherwise -1
	name   string // in upper case
	code   []any  // response code of OK, NO, BAD and BYE; nil if there is none
	text   string // of OK, NO, BAD and BYE
	values []any  // of other responses
}

type (
	atom   string
	quoted string
)

// parser reads the values of a response.
type parser struct {
	rest string
	err  error
}

// parseResponse parses a response with its literals, without the CR LF at its end.
func parseResponse(line string) (*response, error) {
	p := &parser{rest: line}
	r := &response{number: -1}
	r.tag = p.word()
	p.space()
	first := p.word()
	if n, err := strconv.Atoi(first); err == nil && r.tag == "*" {
		r.number = n
		p.space()
		first = p.word()
	}
	r.name = strings.ToUpper(first)
	switch r.name {
	case "OK", "NO", "BAD", "BYE":
		p.space()
		if strings.HasPrefix(p.rest, "[") {
			end := strings.IndexByte(p.rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("a response code has no end: %q", line)
			}
			code := &parser{rest: p.rest[1:end]}
			r.code = code.values()
			if code.err != nil {
				return nil, fmt.Errorf("%w in the code of %q", code.err, line)
			}
			p.rest = strings.TrimPrefix(p.rest[end+1:], " ")
		}
		r.text = p.rest
		if r.text == "" {
			return nil, fmt.Errorf("the text is missing in %q", line)
		}
	case "FETCH":
		p.space()
		p.need("(")
		for p.err == nil && !strings.HasPrefix(p.rest, ")") {
			if len(r.values) > 0 {
				p.space()
			}
			r.values = append(r.values, atom(p.item()))
			p.space()
			r.values = append(r.values, p.value())
		}
		p.need(")")
	default:
		if p.rest != "" {
			p.space()
			r.values = p.values()
		}
	}
	if p.err == nil && p.rest != "" && r.text == "" {
		p.err = fmt.Errorf("%q is left over", p.rest)
	}
	if p.err != nil {
		return nil, fmt.Errorf("%w in %q", p.err, line)
	}
	return r, nil
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) need(s string) {
	rest, is := strings.CutPrefix(p.rest, s)
	if !is {
		p.fail("%q is missing before %q", s, p.rest)
		return
	}
	p.rest = rest
}

func (p *parser) space() {
	if p.rest != "" {
		p.need(" ")
	}
}

func (p *parser) word() string {
	end := strings.IndexAny(p.rest, " ()\"\r\n")
	if end < 0 {
		end = len(p.rest)
	}
	w := p.rest[:end]
	p.rest = p.rest[end:]
	return w
}

// item reads the name of an item of FETCH, which can have a section with spaces. It is returned in upper case, without quotes around field names.
func (p *parser) item() string {
	end := strings.IndexAny(p.rest, " [")
	if end >= 0 && p.rest[end] == '[' {
		closing := strings.IndexByte(p.rest, ']')
		if closing < 0 {
			p.fail("a section has no end")
			return ""
		}
		end = closing + strings.IndexByte(p.rest[closing:], ' ')
	}
	if end < 0 {
		p.fail("an item has no value")
		return ""
	}
	name := strings.ToUpper(strings.ReplaceAll(p.rest[:end], `"`, ""))
	p.rest = p.rest[end:]
	return name
}

func (p *parser) values() (all []any) {
	for p.err == nil && p.rest != "" {
		if len(all) > 0 {
			p.space()
			if p.rest == "" { // Dovecot ends SEARCH without results with a space
				break
			}
		}
		all = append(all, p.value())
	}
	return all
}

func (p *parser) value() any {
	switch {
	case p.err != nil || p.rest == "":
		p.fail("a value is missing")
		return nil
	case p.rest[0] == '(':
		p.rest = p.rest[1:]
		list := []any{}
		for p.err == nil && !strings.HasPrefix(p.rest, ")") {
			// RFC 3501 has no space between the parts of a multipart body and between addresses.
			p.rest = strings.TrimPrefix(p.rest, " ")
			list = append(list, p.value())
		}
		p.need(")")
		return list
	case p.rest[0] == '"':
		var s []byte
		for i := 1; i < len(p.rest); i++ {
			switch c := p.rest[i]; {
			case c == '"':
				p.rest = p.rest[i+1:]
				return quoted(s)
			case c == '\\' && i+1 < len(p.rest):
				i++
				s = append(s, p.rest[i])
			default:
				s = append(s, c)
			}
		}
		p.fail("a quoted string has no end")
		return nil
	case p.rest[0] == '{' || strings.HasPrefix(p.rest, "~{"):
		begin, end := strings.IndexByte(p.rest, '{'), strings.Index(p.rest, "}\r\n")
		if end < 0 {
			p.fail("a literal has no length")
			return nil
		}
		n, err := strconv.Atoi(p.rest[begin+1 : end])
		if err != nil || end+3+n > len(p.rest) {
			p.fail("a literal is incomplete")
			return nil
		}
		s := p.rest[end+3 : end+3+n]
		p.rest = p.rest[end+3+n:]
		return quoted(s)
	}
	w := p.word()
	if w == "" {
		p.fail("a value is missing before %q", p.rest)
	}
	if strings.EqualFold(w, "NIL") {
		return nil
	}
	return atom(w)
}

// show writes a value in one form, whether it was sent as a quoted string or as a literal.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "NIL"
	case atom:
		return string(v)
	case quoted:
		return strconv.Quote(string(v))
	case []any:
		all := make([]string, len(v))
		for i, one := range v {
			all[i] = show(one)
		}
		return "(" + strings.Join(all, " ") + ")"
	}
	return fmt.Sprint(v)
}

// plain returns an atom or a string as it is.
func plain(v any) string {
	switch v := v.(type) {
	case atom:
		return string(v)
	case quoted:
		return string(v)
	}
	return show(v)
}
