package mimetree

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// contentType parses a Content-Type field. A broken field has an empty type and no parameters;
// a type without a subtype remains.
func contentType(l *lexer) (kind, subtype string, params []Param) {
	if l.space() != more {
		return "", "", nil
	}
	var text []byte
	p := l.token(&text)
	if p == atEnd {
		return string(text), "", nil
	}
	if p == failed || !l.is('/') {
		return "", "", nil
	}
	kind = string(text)
	l.at++
	if l.space() != more {
		return "", "", nil
	}
	text = text[:0]
	if p = l.token(&text); p == failed || p == more && !l.is(';') || kind == "" || len(text) == 0 {
		return "", "", nil
	}
	subtype = string(text)
	if strings.EqualFold(kind, "message") && strings.EqualFold(subtype, "rfc822") {
		kind, subtype = "message", "rfc822"
	}
	return kind, subtype, l.params()
}

// disposition parses a Content-Disposition field.
func disposition(l *lexer) (kind string, params []Param, ok bool) {
	l.space()
	var text []byte
	if l.token(&text) == failed {
		return "", nil, false
	}
	return string(text), l.params(), true
}

// encodingName parses a Content-Transfer-Encoding field; "" if it is broken.
func encodingName(l *lexer) string {
	l.space()
	var text []byte
	if l.token(&text) == failed || l.space() != atEnd {
		return ""
	}
	return string(text)
}

// languages parses a Content-Language field (RFC 3282).
func languages(l *lexer) []string {
	var all []string
	l.space()
	for len(all) < maxParams {
		var text []byte
		if l.atom(&text) == failed {
			break
		}
		all = append(all, string(text))
		if !l.is(',') {
			break
		}
		l.at++
		l.space()
	}
	return all
}

// params reads parameters. It skips text that is not a parameter.
func (l *lexer) params() []Param {
	var plain []Param
	var pieces []paramPiece
	for l.at < len(l.text) && len(plain)+len(pieces) < maxParams {
		name, value, ok := l.param()
		if !ok {
			l.at++
			continue
		}
		if piece, is := pieceOf(name, value); is {
			pieces = append(pieces, piece)
		} else {
			plain = append(plain, Param{name, value})
		}
	}
	if len(pieces) == 0 {
		return plain
	}
	return append(plain, joinPieces(pieces)...)
}

// param reads a semicolon, a name, = and a value.
func (l *lexer) param() (name, value string, ok bool) {
	if !l.is(';') {
		return "", "", false
	}
	l.at++
	if l.space() != more {
		return "", "", false
	}
	var text []byte
	if l.token(&text) != more || !l.is('=') {
		return "", "", false
	}
	name = string(text)
	text = text[:0]
	l.at++
	p := l.space()
	switch {
	case p != more:
	case l.is('"'):
		p = l.quoted(&text)
	case l.is('='): // an encoded word that is not quoted: name==?utf-8?...
		for l.at < len(l.text) && strings.IndexByte("; \t\r\n", l.text[l.at]) < 0 {
			text = append(text, l.text[l.at])
			l.at++
		}
	default:
		p = l.token(&text)
	}
	return name, string(text), p != failed
}

// paramPiece is a parameter of RFC 2231: name*0, name*1* or name*.
type paramPiece struct {
	name, value string
	number      int
	extended    bool
}

// pieceOf parses the name of a piece.
func pieceOf(name, value string) (paramPiece, bool) {
	base, rest, ok := strings.Cut(name, "*")
	if !ok {
		return paramPiece{}, false
	}
	p := paramPiece{name: base, value: value}
	if rest == "" {
		p.extended = true
		return p, true
	}
	number := strings.TrimRight(rest, "*")
	p.extended = len(rest) == len(number)+1
	if len(rest) > len(number)+1 || len(number) > 9 {
		return paramPiece{}, false
	}
	if number != "" {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return paramPiece{}, false
		}
		p.number = int(n)
	}
	return p, true
}

// joinPieces joins the pieces of each parameter. If one is missing, they remain parameters of their own.
func joinPieces(pieces []paramPiece) []Param {
	slices.SortStableFunc(pieces, func(a, b paramPiece) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number))
	})
	var all []Param
	for len(pieces) > 0 {
		n, complete, extended := 0, true, false
		for ; n < len(pieces) && strings.EqualFold(pieces[n].name, pieces[0].name); n++ {
			complete = complete && pieces[n].number == n
			extended = extended || pieces[n].extended
		}
		if complete {
			all = append(all, joined(pieces[:n], extended))
		} else {
			for _, p := range pieces[:n] {
				name := p.name + "*" + strconv.Itoa(p.number)
				if p.extended {
					name += "*"
				}
				all = append(all, Param{name, p.value})
			}
		}
		pieces = pieces[n:]
	}
	return all
}

func joined(pieces []paramPiece, extended bool) Param {
	var value strings.Builder
	if extended && !pieces[0].extended {
		value.WriteString("''") // no character set and no language
	}
	for _, p := range pieces {
		if extended && !p.extended {
			value.WriteString(strings.ReplaceAll(p.value, "%", "%25"))
		} else {
			value.WriteString(p.value)
		}
	}
	name := pieces[0].name
	if extended {
		name += "*"
	}
	return Param{name, value.String()}
}
