package jmespath

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A SyntaxError is a mistake in the text of an expression.
type SyntaxError struct {
	Offset  int // in bytes, from the start of the text
	Message string
}

func (e *SyntaxError) Error() string { return e.Message }

func syntaxError(offset int, format string, args ...any) error {
	return &SyntaxError{Offset: offset, Message: fmt.Sprintf(format, args...)}
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenQuotedName
	tokenNumber
	tokenLiteral
	tokenRightBracket
	tokenRightParen
	tokenRightBrace
	tokenComma
	tokenColon
	tokenCurrent
	tokenReference // &
	tokenPipe
	tokenOr
	tokenAnd
	tokenEqual
	tokenNotEqual
	tokenLess
	tokenLessEqual
	tokenGreater
	tokenGreaterEqual
	tokenFlatten
	tokenStar
	tokenFilter
	tokenDot
	tokenNot
	tokenLeftBrace
	tokenLeftBracket
	tokenLeftParen
)

// A token is a token of an expression.
type token struct {
	kind   tokenKind
	offset int
	text   string // of the source
	name   string // of a name
	number int
	value  any // of a literal
}

func (t *token) String() string {
	if t.kind == tokenEnd {
		return "the end"
	}
	return strconv.Quote(t.text)
}

var simpleTokens = map[byte]tokenKind{
	'.': tokenDot, '*': tokenStar, ',': tokenComma, ':': tokenColon, '{': tokenLeftBrace, '}': tokenRightBrace,
	']': tokenRightBracket, '(': tokenLeftParen, ')': tokenRightParen, '@': tokenCurrent,
}

// tokenize splits text into tokens; the last one is tokenEnd.
func tokenize(text string) ([]token, error) {
	var tokens []token
	for i := 0; i < len(text); {
		c := text[i]
		t := token{offset: i}
		n, err := 1, error(nil)
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case isNameStart(c):
			for i+n < len(text) && (isNameStart(text[i+n]) || isDigit(text[i+n])) {
				n++
			}
			t.kind, t.name = tokenName, text[i:i+n]
		case simpleTokens[c] != tokenEnd:
			t.kind = simpleTokens[c]
		case isDigit(c) || c == '-':
			for i+n < len(text) && isDigit(text[i+n]) {
				n++
			}
			t.kind = tokenNumber
			t.number, err = readIndex(i, text[i:i+n])
		case c == '[':
			switch t.kind = tokenLeftBracket; {
			case strings.HasPrefix(text[i:], "[?"):
				n, t.kind = 2, tokenFilter
			case strings.HasPrefix(text[i:], "[]"):
				n, t.kind = 2, tokenFlatten
			}
		case c == '"' || c == '\'' || c == '`':
			n, err = t.readQuoted(text, i)
		default:
			t.kind, n = operatorAt(text[i:])
			if n == 0 {
				r, _ := utf8.DecodeRuneInString(text[i:])
				err = syntaxError(i, "unknown character %q", r)
			}
		}
		if err != nil {
			return nil, err
		}
		t.text = text[i : i+n]
		tokens = append(tokens, t)
		i += n
	}
	return append(tokens, token{kind: tokenEnd, offset: len(text)}), nil
}

// operatorAt returns the operator that text begins with, and its length; 0 if there is none.
func operatorAt(text string) (tokenKind, int) {
	for _, one := range [...]struct {
		text string
		kind tokenKind
	}{
		{"&&", tokenAnd}, {"&", tokenReference}, {"||", tokenOr}, {"|", tokenPipe}, {"==", tokenEqual},
		{"!=", tokenNotEqual}, {"!", tokenNot}, {"<=", tokenLessEqual}, {"<", tokenLess}, {">=", tokenGreaterEqual}, {">", tokenGreater},
	} {
		if strings.HasPrefix(text, one.text) {
			return one.kind, len(one.text)
		}
	}
	return tokenEnd, 0
}

// readIndex reads the number of an index or a slice; one beyond 32 bits is as good as the limit.
func readIndex(offset int, text string) (int, error) {
	if text == "-" {
		return 0, syntaxError(offset, "a number must follow the minus")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && strings.HasPrefix(text, "-") {
		n = math.MinInt32
	} else if err != nil {
		n = math.MaxInt32
	}
	return int(max(math.MinInt32, min(n, math.MaxInt32))), nil
}

// readQuoted reads the quoted name, the text or the literal at i, and returns its length.
func (t *token) readQuoted(text string, i int) (length int, err error) {
	quote := text[i]
	end := i + 1
	for end < len(text) && text[end] != quote {
		if text[end] == '\\' && end+1 < len(text) && (text[end+1] == '\\' || text[end+1] == quote) {
			end++
		}
		end++
	}
	if end >= len(text) {
		return 0, syntaxError(i, "the closing %c is missing", quote)
	}
	inner := text[i+1 : end]
	switch quote {
	case '"':
		t.kind = tokenQuotedName
		if json.Unmarshal([]byte(text[i:end+1]), &t.name) != nil {
			return 0, syntaxError(i, "the quoted name is not a valid JSON string")
		}
	case '\'':
		t.kind, t.value = tokenLiteral, strings.ReplaceAll(inner, `\'`, `'`)
	default:
		t.kind = tokenLiteral
		inner = strings.ReplaceAll(strings.TrimLeftFunc(inner, unicode.IsSpace), "\\`", "`")
		if !looksLikeJSON(inner) {
			inner = `"` + inner + `"`
		}
		if json.Unmarshal([]byte(inner), &t.value) != nil {
			return 0, syntaxError(i, "the literal between backticks is not valid JSON")
		}
	}
	return end + 1 - i, nil
}

// looksLikeJSON reports whether the text of a literal is JSON; any other text is the string itself.
func looksLikeJSON(text string) bool {
	switch {
	case text == "":
		return false
	case text == "true" || text == "false" || text == "null" || strings.IndexByte(`[{"`, text[0]) >= 0:
		return true
	}
	return (text[0] == '-' || isDigit(text[0])) && json.Valid([]byte(text))
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isNameStart(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
