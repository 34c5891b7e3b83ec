package lang

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParamColumns returns the params that stand for the literals in taken, and their number.
func (tf *TokenizedFilter) ParamColumns(taken []bool) (params []Param, count int) {
	params = make([]Param, tf.Literals)
	n, numbers, texts := 0, 0, 0
	for i := range tf.Tokens {
		tok := &tf.Tokens[i]
		if tok.Kind == KindAny {
			continue
		}
		if p := &params[n]; taken[n] {
			p.Name = fmt.Sprint("literal ", n)
			if tok.IsText() {
				p.Kind, p.Column = tok.Kind, texts
				texts++
			} else {
				p.Kind, p.Column = KindDouble, numbers
				numbers++
			}
		}
		n++
	}
	return params, numbers + texts
}

// LiteralValues returns the literals in taken as params.
func (tf *TokenizedFilter) LiteralValues(taken []bool) (v ParamValues) {
	n := 0
	for i := range tf.Tokens {
		tok := &tf.Tokens[i]
		if tok.Kind == KindAny {
			continue
		}
		if n++; taken == nil || !taken[n-1] {
			continue
		}
		if tok.IsText() {
			v.Texts = append(v.Texts, tok.Value)
		} else {
			v.Numbers = append(v.Numbers, tok.Number)
		}
	}
	return v
}

// A TokenizedFilter is the text of a filter as tokens. Filters with the same tokens apart from
// literals have the same syntax tree. Tokenize knows only a few rules of CEL's lexer and gives up
// on the others (comments, raw and long strings, bytes).
type TokenizedFilter struct {
	Tokens   []Token
	Literals int
}

// A Token is a token of the text.
type Token struct {
	Text       string
	offset     int  // in bytes
	RuneOffset int  // in runes
	Kind       Kind // of a literal that can become a param: KindString, KindInt, KindDouble, or KindList of strings; else KindAny
	Number     float64
	Value      string // of a string; the listText of a list
}

// IsText reports whether the literal becomes one of the texts of a row; otherwise it becomes a
// number.
func (tok *Token) IsText() bool { return tok.Kind == KindString || tok.Kind == KindList }

// maxPlainInt is the limit above which a double cannot represent every integer. A larger literal
// does not become a param, so that integers compare exactly.
const maxPlainInt = 1 << 53

// Tokenize splits a filter into tokens; false if it contains something that Tokenize does not read.
// It reuses the memory of words.
func Tokenize(text string, words []Token) (TokenizedFilter, bool) {
	tf := TokenizedFilter{Tokens: words[:0]}
	runes := 0
	for i := 0; i < len(text); {
		c := text[i]
		n, tok := 1, Token{offset: i, RuneOffset: runes}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i, runes = i+1, runes+1
			continue
		case c == '\'' || c == '"':
			n = stringEnd(text[i:])
			if n == 0 || i > 0 && IsIdentifierByte(text[i-1]) {
				return TokenizedFilter{}, false
			}
			if inner := text[i+1 : i+n-1]; strings.IndexByte(inner, '\\') < 0 {
				tok.Kind, tok.Value = KindString, inner
			}
		case c == '[' && tf.endsWithIn():
			if length, values := listEnd(text[i:]); length > 0 {
				n, tok.Kind, tok.Value = length, KindList, TextOfList(values)
			}
		case IsDigit(c) || c == '-' && i+1 < len(text) && IsDigit(text[i+1]) && !tf.endsOperand():
			n = numberEnd(text[i:])
			tok.readNumber(text[i : i+n])
		case IsIdentifierByte(c):
			for n < len(text)-i && IsIdentifierByte(text[i+n]) {
				n++
			}
		case c == '`':
			if n = backticksEnd(text[i:]); n == 0 {
				return TokenizedFilter{}, false
			}
		case c >= utf8.RuneSelf || c == '.' && i+1 < len(text) && IsDigit(text[i+1]) || strings.HasPrefix(text[i:], "//"):
			return TokenizedFilter{}, false
		case i+1 < len(text) && strings.Contains("&& || == != <= >=", text[i:i+2]) && text[i+1] != ' ':
			n = 2
		}
		tok.Text = text[i : i+n]
		tf.Tokens = append(tf.Tokens, tok)
		if tok.Kind != KindAny {
			tf.Literals++
		}
		runes += utf8.RuneCountInString(tok.Text)
		i += n
	}
	return tf, true
}

// maxConjunctDepth is the deepest nesting of brackets in a filter that is split into conjuncts, far
// below CEL's limit for the whole.
const maxConjunctDepth = 16

// Conjuncts splits a filter a && b && c at the outermost &&; nil for any other filter. The offsets
// of a conjunct's tokens still count from the start of the whole filter.
func (tf *TokenizedFilter) Conjuncts() (parts []TokenizedFilter) {
	depth, from, literals := 0, 0, 0
	for i := range tf.Tokens {
		tok := &tf.Tokens[i]
		if tok.Kind != KindAny {
			literals++
			continue
		}
		switch tok.Text {
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
				parts = append(parts, TokenizedFilter{tf.Tokens[from:i], literals})
				from, literals = i+1, 0
			}
		}
	}
	if parts == nil || depth != 0 {
		return nil
	}
	return append(parts, TokenizedFilter{tf.Tokens[from:], literals})
}

// TextOf returns the part of text that the tokens cover.
func (tf *TokenizedFilter) TextOf(text string) string {
	if len(tf.Tokens) == 0 {
		return ""
	}
	last := &tf.Tokens[len(tf.Tokens)-1]
	return text[tf.Tokens[0].offset : last.offset+len(last.Text)]
}

// endsOperand reports whether a minus after the tokens is a subtraction.
func (tf *TokenizedFilter) endsOperand() bool {
	if len(tf.Tokens) == 0 {
		return false
	}
	last := &tf.Tokens[len(tf.Tokens)-1]
	c := last.Text[len(last.Text)-1]
	return last.Kind != KindAny || IsIdentifierByte(c) || c == ')' || c == ']' || c == '}' || c == '\'' || c == '"' || c == '`'
}

// endsWithIn reports whether the last token is the operator in.
func (tf *TokenizedFilter) endsWithIn() bool {
	return len(tf.Tokens) > 0 && tf.Tokens[len(tf.Tokens)-1].Text == "in"
}

// listEnd returns the length and the strings of the list of plain strings that text begins with; 0
// for another list, or an empty one.
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

// stringEnd returns the length of the string that text begins with; 0 if it is a long string or has
// no end.
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

// backticksEnd returns the length of the name in backticks that text begins with; 0 if CEL does not
// accept it.
func backticksEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`' && i > 1:
			return i + 1
		case !IsIdentifierByte(c) && strings.IndexByte(".-/ ", c) < 0:
			return 0
		}
	}
	return 0
}

// numberEnd returns the length of the number that text begins with, with all letters and digits
// that follow directly.
func numberEnd(text string) int {
	n := 1
	for n < len(text) && (IsIdentifierByte(text[n]) || text[n] == '.' ||
		(text[n] == '-' || text[n] == '+') && (text[n-1] == 'e' || text[n-1] == 'E')) {
		n++
	}
	return n
}

// readNumber makes tok a literal if text is a plain decimal number.
func (tok *Token) readNumber(text string) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return
	}
	if point := strings.IndexByte(text, '.'); point >= 0 && (point+1 == len(text) || !IsDigit(text[point+1])) {
		return // Go accepts 1. as a number, CEL does not
	}
	v, err := strconv.ParseFloat(text, 64)
	switch whole := strings.Trim(text, "0123456789-") == ""; {
	case err != nil || math.IsInf(v, 0) || whole && math.Abs(v) >= maxPlainInt:
	case whole:
		tok.Kind, tok.Number = KindInt, v+0 // -0 becomes 0
	default:
		tok.Kind, tok.Number = KindDouble, v+0
	}
}

func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

func IsIdentifierByte(c byte) bool {
	return c == '_' || IsDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// placeholders stand for literals in a key. They are bytes that are not UTF-8, so that no filter
// contains them.
var placeholders = [...]string{KindString: "\xfe", KindInt: "\xfd", KindDouble: "\xfc", KindList: "\xfb", KindMap: ""}

// Key appends the text of the tokens to b, with a placeholder for each literal in taken; nil stands
// for all of them.
func (tf *TokenizedFilter) Key(b []byte, taken []bool) []byte {
	literal := 0
	for i := range tf.Tokens {
		tok := &tf.Tokens[i]
		if tok.Kind != KindAny {
			literal++
			if taken == nil || taken[literal-1] {
				b = append(b, placeholders[tok.Kind]...)
				continue
			}
		}
		b = append(append(b, tok.Text...), ' ')
	}
	return b
}
