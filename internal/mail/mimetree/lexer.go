package mimetree

import (
	"bytes"
	"strings"
)

// A lexer reads a structured field (RFC 5322, section 3.2). Its methods return whether they succeeded and whether there is more text.
type lexer struct {
	text    []byte
	at      int
	comment []byte // the last one, without its parentheses; only if comments is set
	// comments says that comments are kept.
	comments bool
}

// progress is the result of reading a token.
type progress int8

const (
	failed progress = iota - 1
	atEnd           // succeeded, and nothing follows
	more            // succeeded, and more text follows
)

func structured(value []byte) *lexer {
	if bytes.IndexByte(value, 0) >= 0 {
		value = bytes.ReplaceAll(value, []byte{0}, []byte("\ufffd"))
	}
	return &lexer{text: value}
}

func (l *lexer) rest() progress {
	if l.at < len(l.text) {
		return more
	}
	return atEnd
}

// is reports whether a character is next.
func (l *lexer) is(c byte) bool { return l.at < len(l.text) && l.text[l.at] == c }

// The classes of characters: those of an atom (RFC 5322, with all above ASCII), and those of a token (RFC 2045) and dots.
var atomChar, tokenChar [256]bool

func init() {
	for c := range 256 {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		atomChar[c] = alnum || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", byte(c)) >= 0
		tokenChar[c] = alnum || strings.IndexByte("!#$%&'*+-^_`{|}~.", byte(c)) >= 0
	}
}

// space skips white space and comments.
func (l *lexer) space() progress {
	for l.at < len(l.text) {
		switch l.text[l.at] {
		case ' ', '\t', '\r', '\n':
			l.at++
		case '(':
			if !l.skipComment() {
				return failed
			}
		default:
			return more
		}
	}
	return atEnd
}

func (l *lexer) skipComment() bool {
	l.comment = l.comment[:0]
	kept := 0 // of a comment that is not closed: the text before its last backslash or line end
	l.at++
	for level := 1; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch c {
		case '(':
			level++
		case ')':
			if level--; level == 0 {
				l.at++
				return true
			}
		case '\\':
			kept = len(l.comment)
			if l.at++; l.at == len(l.text) {
				return false
			}
			c = l.text[l.at]
		case '\n':
			l.comment = bytes.TrimSuffix(l.comment, []byte("\r"))
			kept = len(l.comment)
			continue
		}
		if l.comments {
			l.comment = append(l.comment, c)
		}
	}
	l.comment = l.comment[:kept]
	return false
}

// run appends characters of a class, and skips the space after them.
func (l *lexer) run(to *[]byte, class *[256]bool, also byte) progress {
	from := l.at
	for l.at < len(l.text) && (class[l.text[l.at]] || l.text[l.at] == also && also != 0) {
		l.at++
	}
	*to = append(*to, l.text[from:l.at]...)
	if l.at == len(l.text) {
		return atEnd
	}
	return l.space()
}

// token reads a token of RFC 2045, which may be empty.
func (l *lexer) token(to *[]byte) progress { return l.run(to, &tokenChar, 0) }

func (l *lexer) atom(to *[]byte) progress {
	if l.at == len(l.text) || !atomChar[l.text[l.at]] {
		return failed
	}
	return l.run(to, &atomChar, 0)
}

// dotAtom reads atoms and dots between them, with space around the dots.
func (l *lexer) dotAtom(to *[]byte) progress {
	if l.at == len(l.text) || !atomChar[l.text[l.at]] {
		return failed
	}
	for {
		if p := l.run(to, &atomChar, 0); p != more {
			return p
		}
		if !l.is('.') {
			return more
		}
		l.at++
		*to = append(*to, '.')
		if p := l.space(); p != more {
			return p
		}
		if !atomChar[l.text[l.at]] {
			return failed
		}
	}
}

// quoted reads a quoted string.
func (l *lexer) quoted(to *[]byte) progress {
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; c {
		case '"':
			l.at++
			return l.space()
		case '\n':
			if n := len(*to); n > 0 && (*to)[n-1] == '\r' && l.text[l.at-1] == '\r' {
				*to = (*to)[:n-1]
			}
		case '\\':
			if l.at++; l.at == len(l.text) {
				return failed
			}
			*to = append(*to, l.text[l.at])
		default:
			*to = append(*to, c)
		}
	}
	return failed
}

// phrase reads words and dots.
func (l *lexer) phrase(to *[]byte) progress {
	if l.at == len(l.text) {
		return atEnd
	}
	if l.is('.') {
		return failed
	}
	for {
		var p progress
		if l.is('"') {
			p = l.quoted(to)
		} else {
			p = l.run(to, &atomChar, '.')
		}
		if p != more {
			return p
		}
		if c := l.text[l.at]; !atomChar[c] && c != '"' && c != '.' {
			return l.space()
		}
		*to = append(*to, ' ')
	}
}

// domain reads an @ and the domain after it.
func (l *lexer) domain(to *[]byte) progress {
	l.at++
	if l.space() != more {
		return failed
	}
	if !l.is('[') {
		return l.dotAtom(to)
	}
	for from := l.at; l.at < len(l.text); l.at++ {
		switch l.text[l.at] {
		case '\\':
			l.at++
		case ']':
			l.at++
			*to = append(*to, l.text[from:l.at]...)
			return l.space()
		}
	}
	l.at = len(l.text)
	return failed
}

// unfolded returns the text of an unstructured field without line ends and the white space before it.
func unfolded(value []byte) string {
	value = skipBlanks(value)
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, 0) < 0 {
		return string(value)
	}
	var b strings.Builder
	for i, c := range value {
		switch {
		case c == 0:
			b.WriteString("\ufffd")
		case c == '\n', c == '\r' && i+1 < len(value) && value[i+1] == '\n':
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// skipBlanks skips blanks before text; if there is no text in the first line, only one.
func skipBlanks(value []byte) []byte {
	text := bytes.TrimLeft(value, " \t")
	if len(text) < len(value) && (len(text) == 0 || text[0] == '\n' || bytes.HasPrefix(text, []byte("\r\n"))) {
		return value[1:]
	}
	return text
}

// collapsed returns text with one space for each run of white space, and none at its ends.
func collapsed(text []byte) string {
	clean := true
	for i, c := range text {
		if c == '\r' || c == '\n' || c == '\t' || c == 0 || c == ' ' && (i == 0 || i == len(text)-1 || text[i-1] == ' ') {
			clean = false
			break
		}
	}
	if clean {
		return string(text)
	}
	var b strings.Builder
	space := false
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n':
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if c == 0 {
			b.WriteString("\ufffd")
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
