package evaluator

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenName             // an identifier or a reserved word
	tokenQuoted           // a name between backticks
	tokenInt
	tokenUint
	tokenDouble
	tokenString
	tokenBytes
	tokenSymbol // an operator or a bracket
)

// A token is one lexical element. Its text is the source of a number, and the decoded content of a
// string.
type token struct {
	kind tokenKind
	text string
	at   int // offset in the source, in bytes
}

// A syntaxError is the position at which a text is not valid CEL, and the reason.
type syntaxError struct {
	line, column int
	problem      string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.problem)
}

// errorAt returns an error at an offset in source.
func errorAt(source string, at int, format string, args ...any) error {
	at = min(at, len(source))
	before := source[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &syntaxError{line, column, fmt.Sprintf(format, args...)}
}

// symbols are the operators and brackets, longer ones first.
var symbols = []string{"==", "!=", "<=", ">=", "&&", "||",
	"<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}"}

// lex splits source into tokens; the last one is tokenEnd.
func lex(source string) ([]token, error) {
	if !utf8.ValidString(source) {
		return nil, &syntaxError{1, 1, "the text is not valid UTF-8"}
	}
	var tokens []token
	for at := 0; ; {
		at = skipBlank(source, at)
		if at == len(source) {
			return append(tokens, token{tokenEnd, "the end", at}), nil
		}
		next, end, err := lexOne(source, at)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, next)
		at = end
	}
}

// skipBlank returns the offset of the next token. White space is tab, line feed, form feed,
// carriage return and space; a comment ends with its line.
func skipBlank(source string, at int) int {
	for at < len(source) {
		switch c := source[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			at++
		case strings.HasPrefix(source[at:], "//"):
			end := strings.IndexByte(source[at:], '\n')
			if end < 0 {
				return len(source)
			}
			at += end + 1
		default:
			return at
		}
	}
	return at
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func startsName(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func inName(c byte) bool { return startsName(c) || isDigit(c) }

// span returns the end of the run of bytes that is accepts, from offset at.
func span(source string, at int, is func(byte) bool) int {
	for at < len(source) && is(source[at]) {
		at++
	}
	return at
}

func lexOne(source string, at int) (token, int, error) {
	c := source[at]
	if end, raw, isBytes, ok := stringPrefix(source, at); ok {
		return lexString(source, at, end, raw, isBytes)
	}
	switch {
	case startsName(c):
		end := span(source, at, inName)
		return token{tokenName, source[at:end], at}, end, nil
	case isDigit(c) || c == '.' && at+1 < len(source) && isDigit(source[at+1]):
		kind, end := lexNumber(source, at)
		return token{kind, source[at:end], at}, end, nil
	case c == '`':
		end := span(source, at+1, func(c byte) bool {
			return inName(c) || c == '.' || c == '-' || c == '/' || c == ' '
		})
		if end == at+1 || end == len(source) || source[end] != '`' {
			return token{}, 0, errorAt(source, at, "a name in backticks can contain only letters, digits, spaces and . - / _")
		}
		return token{tokenQuoted, source[at+1 : end], at}, end + 1, nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(source[at:], s) {
			return token{tokenSymbol, s, at}, at + len(s), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(source[at:])
	return token{}, 0, errorAt(source, at, "unexpected character %q", r)
}

// lexNumber returns the kind and the end of the number at an offset, including the suffix of an
// unsigned integer. A decimal point is part of the number if digits follow.
func lexNumber(source string, at int) (tokenKind, int) {
	kind, end := tokenInt, span(source, at, isDigit)
	if strings.HasPrefix(source[at:], "0x") && at+2 < len(source) && isHex(source[at+2]) {
		end = span(source, at+2, isHex)
	} else {
		if end+1 < len(source) && source[end] == '.' && isDigit(source[end+1]) {
			kind, end = tokenDouble, span(source, end+1, isDigit)
		}
		if exponent := exponentEnd(source, end); exponent > end {
			return tokenDouble, exponent
		}
	}
	if kind == tokenInt && end < len(source) && (source[end] == 'u' || source[end] == 'U') {
		return tokenUint, end + 1
	}
	return kind, end
}

// exponentEnd returns the end of the exponent at an offset, or the offset itself if there is none.
func exponentEnd(source string, at int) int {
	if at >= len(source) || source[at] != 'e' && source[at] != 'E' {
		return at
	}
	digits := at + 1
	if digits < len(source) && (source[digits] == '+' || source[digits] == '-') {
		digits++
	}
	if end := span(source, digits, isDigit); end > digits {
		return end
	}
	return at
}

// stringPrefix reports whether a string literal starts at an offset, and where its opening quote
// is. The prefix b makes it bytes, r keeps backslashes; b comes first.
func stringPrefix(source string, at int) (quote int, raw, isBytes, ok bool) {
	if at < len(source) && (source[at] == 'b' || source[at] == 'B') {
		isBytes = true
		at++
	}
	if at < len(source) && (source[at] == 'r' || source[at] == 'R') {
		raw = true
		at++
	}
	ok = at < len(source) && (source[at] == '"' || source[at] == '\'')
	return at, raw, isBytes, ok
}

// lexString reads the literal that starts at start and has its opening quote at quote. A literal
// in triple quotes may have several lines, whose ends become line feeds.
func lexString(source string, start, quote int, raw, isBytes bool) (token, int, error) {
	mark := source[quote : quote+1]
	long := strings.HasPrefix(source[quote:], strings.Repeat(mark, 3))
	if long {
		mark = strings.Repeat(mark, 3)
	}
	at := quote + len(mark)
	for {
		switch {
		case at >= len(source) || !long && (source[at] == '\n' || source[at] == '\r'):
			return token{}, 0, errorAt(source, start, "the string is not terminated")
		case strings.HasPrefix(source[at:], mark):
			content := source[quote+len(mark) : at]
			if strings.IndexByte(content, '\r') >= 0 {
				content = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(content)
			}
			kind := tokenString
			if isBytes {
				kind = tokenBytes
			}
			if !raw {
				var problem string
				if content, problem = unescape(content, isBytes); problem != "" {
					return token{}, 0, errorAt(source, start, "%s", problem)
				}
			}
			return token{kind, content, start}, at + len(mark), nil
		case source[at] == '\\' && !raw:
			at += 2
		default:
			at++
		}
	}
}

// plainEscapes are the escapes of one character.
var plainEscapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '`': '`', '?': '?'}

// unescape decodes the escapes of a literal. In bytes, \x and octal digits denote octets; in a
// string, code points. The second result is the problem, if any.
func unescape(content string, isBytes bool) (decoded, problem string) {
	if strings.IndexByte(content, '\\') < 0 {
		return content, ""
	}
	var out strings.Builder
	for at := 0; at < len(content); at++ {
		if content[at] != '\\' {
			out.WriteByte(content[at])
			continue
		}
		at++
		if at == len(content) {
			return "", "the string ends within an escape sequence"
		}
		c := content[at]
		if plain, ok := plainEscapes[c]; ok {
			out.WriteByte(plain)
			continue
		}
		digits, base := 0, 16
		switch {
		case c == 'x' || c == 'X':
			digits = 2
		case c == 'u' && !isBytes:
			digits = 4
		case c == 'U' && !isBytes:
			digits = 8
		case c >= '0' && c <= '3':
			digits, base = 3, 8
			at-- // the first digit counts
		default:
			return "", fmt.Sprintf("unknown escape sequence \\%c", c)
		}
		if at+digits >= len(content) {
			return "", "the string ends within an escape sequence"
		}
		text := content[at+1 : at+1+digits]
		code, err := strconv.ParseUint(text, base, 32)
		if err != nil || strings.ContainsAny(text, "+-_") {
			return "", fmt.Sprintf("the escape sequence \\%c must be followed by %d valid digits", c, digits)
		}
		at += digits
		switch {
		case isBytes:
			out.WriteByte(byte(code))
		case !utf8.ValidRune(rune(code)) || code > utf8.MaxRune:
			return "", "an escape sequence is not a valid Unicode code point"
		default:
			out.WriteRune(rune(code))
		}
	}
	return out.String(), ""
}
