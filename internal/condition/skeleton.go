package condition

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A skeleton is the text of a filter with its literals taken out: filters of one
// skeleton have the same syntax tree. It is read by a few rules of CEL's lexer;
// a text that has more (comments, raw and long strings, bytes) has no skeleton.
type tokenizedFilter struct {
	tokens   []token
	literals int
}

// A word is a token of the text.
type token struct {
	text       string
	offset     int  // where it begins, in bytes
	runeOffset int  // and in runes
	kind       kind // of a literal that can be taken out: kindString, kindInt, kindDouble, or kindList of strings; else kindAny
	number     float64
	value      string // of a string; the listText of a list
}

// isText reports whether w as a param is among the texts of a row.
func (w *token) isText() bool { return w.kind == kindString || w.kind == kindList }

// maxPlainInt is from where on a double does not hold every integer: a literal
// beyond is no param, so that integers compare exactly.
const maxPlainInt = 1 << 53

// tokenize cuts a filter into words; false where it has what is not read.
func tokenize(text string, words []token) (tokenizedFilter, bool) {
	s := tokenizedFilter{tokens: words[:0]}
	runes := 0
	for i := 0; i < len(text); {
		c := text[i]
		n, w := 1, token{offset: i, runeOffset: runes}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i, runes = i+1, runes+1
			continue
		case c == '\'' || c == '"':
			n = stringEnd(text[i:])
			if n == 0 || i > 0 && isIdentifierByte(text[i-1]) {
				return tokenizedFilter{}, false
			}
			if inner := text[i+1 : i+n-1]; strings.IndexByte(inner, '\\') < 0 {
				w.kind, w.value = kindString, inner
			}
		case c == '[' && s.endsWithIn():
			if length, values := listEnd(text[i:]); length > 0 {
				n, w.kind, w.value = length, kindList, textOfList(values)
			}
		case isDigit(c) || c == '-' && i+1 < len(text) && isDigit(text[i+1]) && !s.endsOperand():
			n = numberEnd(text[i:])
			w.readNumber(text[i : i+n])
		case isIdentifierByte(c):
			for n < len(text)-i && isIdentifierByte(text[i+n]) {
				n++
			}
		case c == '`':
			if n = backticksEnd(text[i:]); n == 0 {
				return tokenizedFilter{}, false
			}
		case c >= utf8.RuneSelf || c == '.' && i+1 < len(text) && isDigit(text[i+1]) || strings.HasPrefix(text[i:], "//"):
			return tokenizedFilter{}, false
		case i+1 < len(text) && strings.Contains("&& || == != <= >=", text[i:i+2]) && text[i+1] != ' ':
			n = 2
		}
		w.text = text[i : i+n]
		s.tokens = append(s.tokens, w)
		if w.kind != kindAny {
			s.literals++
		}
		runes += utf8.RuneCountInString(w.text)
		i += n
	}
	return s, true
}

// maxConjunctDepth is how deep brackets are in a text that is taken apart: far less
// than what CEL allows for the whole.
const maxConjunctDepth = 16

// conjuncts takes s apart where && joins the whole of it; nil where it is no such
// chain, but one condition. Each part is a skeleton, though not of its own text:
// that is where CEL counts from.
func (s *tokenizedFilter) conjuncts() (parts []tokenizedFilter) {
	depth, from, literals := 0, 0, 0
	for i := range s.tokens {
		w := &s.tokens[i]
		if w.kind != kindAny {
			literals++
			continue
		}
		switch w.text {
		case "(", "[", "{":
			if depth++; depth > maxConjunctDepth {
				return nil
			}
		case ")", "]", "}":
			if depth--; depth < 0 {
				return nil
			}
		case "||", "?", ":":
			if depth == 0 {
				return nil
			}
		case "&&":
			if depth == 0 {
				parts = append(parts, tokenizedFilter{s.tokens[from:i], literals})
				from, literals = i+1, 0
			}
		}
	}
	if parts == nil || depth != 0 {
		return nil
	}
	return append(parts, tokenizedFilter{s.tokens[from:], literals})
}

// textOf is the part of text that s is the skeleton of.
func (s *tokenizedFilter) textOf(text string) string {
	if len(s.tokens) == 0 {
		return ""
	}
	last := &s.tokens[len(s.tokens)-1]
	return text[s.tokens[0].offset : last.offset+len(last.text)]
}

// endsOperand reports whether a minus after the words so far subtracts.
func (s *tokenizedFilter) endsOperand() bool {
	if len(s.tokens) == 0 {
		return false
	}
	last := &s.tokens[len(s.tokens)-1]
	c := last.text[len(last.text)-1]
	return last.kind != kindAny || isIdentifierByte(c) || c == ')' || c == ']' || c == '}' || c == '\'' || c == '"' || c == '`'
}

// endsWithIn reports whether a list that follows is what something is sought in.
func (s *tokenizedFilter) endsWithIn() bool {
	return len(s.tokens) > 0 && s.tokens[len(s.tokens)-1].text == "in"
}

// listEnd is the length of the list of plain strings that text begins with, and these;
// 0 if it is another list, or empty.
func listEnd(text string) (length int, values []string) {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			continue
		case '\'', '"':
			n := stringEnd(text[i:])
			if n == 0 || strings.IndexByte(text[i:i+n], '\\') >= 0 {
				return 0, nil
			}
			values = append(values, text[i+1:i+n-1])
			i += n
			for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
				i++
			}
			switch {
			case i < len(text) && text[i] == ']':
				return i + 1, values
			case i == len(text) || text[i] != ',':
				return 0, nil
			}
		default:
			return 0, nil
		}
	}
	return 0, nil
}

// stringEnd is the length of the string that text begins with; 0 if it is a long
// one or has no end.
func stringEnd(text string) int {
	if len(text) > 2 && text[1] == text[0] && text[2] == text[0] {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n', '\r':
			return 0
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// backticksEnd is the length of the name in backticks that text begins with; 0 if it is none
// to CEL.
func backticksEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`' && i > 1:
			return i + 1
		case !isIdentifierByte(c) && strings.IndexByte(".-/ ", c) < 0:
			return 0
		}
	}
	return 0
}

// numberEnd is the length of the number that text begins with, with all that
// sticks to it.
func numberEnd(text string) int {
	n := 1
	for n < len(text) && (isIdentifierByte(text[n]) || text[n] == '.' ||
		(text[n] == '-' || text[n] == '+') && (text[n-1] == 'e' || text[n-1] == 'E')) {
		n++
	}
	return n
}

// readNumber makes w a literal if text is a plain decimal number.
func (w *token) readNumber(text string) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return
	}
	if point := strings.IndexByte(text, '.'); point >= 0 && (point+1 == len(text) || !isDigit(text[point+1])) {
		return // 1. is a number to Go, and none to CEL
	}
	v, err := strconv.ParseFloat(text, 64)
	switch whole := strings.Trim(text, "0123456789-") == ""; {
	case err != nil || math.IsInf(v, 0) || whole && math.Abs(v) >= maxPlainInt:
	case whole:
		w.kind, w.number = kindInt, v+0 // -0 becomes 0
	default:
		w.kind, w.number = kindDouble, v+0
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentifierByte(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// placeholders stand for literals in a key; no text of a filter has such a byte, which
// is no UTF-8.
var placeholders = [...]string{kindString: "\xfe", kindInt: "\xfd", kindDouble: "\xfc", kindList: "\xfb", kindMap: ""}

// key is the skeleton as a text, with a hole for each literal that taken names;
// nil is all of them.
func (s *tokenizedFilter) key(b []byte, taken []bool) []byte {
	literal := 0
	for i := range s.tokens {
		w := &s.tokens[i]
		if w.kind != kindAny {
			literal++
			if taken == nil || taken[literal-1] {
				b = append(b, placeholders[w.kind]...)
				continue
			}
		}
		b = append(append(b, w.text...), ' ')
	}
	return b
}
