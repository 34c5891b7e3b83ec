package rawjson

import (
	"bytes"
)

// maxDepth is the maximum nesting of objects and arrays, that of encoding/json.
const maxDepth = 10_000

// End returns the index after the JSON value (RFC 8259) that begins at b[i], or -1 if there is no
// valid value. It accepts the same values as json.Valid, but it needs only one pass to find the
// end. The depth of an outermost value is 1.
func End(b []byte, i, depth int) int {
	if i == len(b) || depth > maxDepth {
		return -1
	}
	switch b[i] {
	case '{':
		return membersEnd(b, i, depth, '}')
	case '[':
		return membersEnd(b, i, depth, ']')
	case '"':
		return textEnd(b, i)
	case 't':
		return wordEnd(b, i, "true")
	case 'f':
		return wordEnd(b, i, "false")
	case 'n':
		return wordEnd(b, i, "null")
	}
	return numberEnd(b, i)
}

// membersEnd is End for an object or an array, which ends with last.
func membersEnd(b []byte, i, depth int, last byte) int {
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == last {
		return i + 1
	}
	for {
		if last == '}' {
			if i == len(b) || b[i] != '"' {
				return -1
			}
			if i = textEnd(b, i); i < 0 {
				return -1
			}
			if i = SkipSpace(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = SkipSpace(b, i+1)
		}
		if i = End(b, i, depth+1); i < 0 {
			return -1
		}
		i = SkipSpace(b, i)
		switch {
		case i < len(b) && b[i] == last:
			return i + 1
		case i == len(b) || b[i] != ',':
			return -1
		}
		i = SkipSpace(b, i+1)
	}
}

func textEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			if i++; i == len(b) {
				return -1
			}
			if b[i] == 'u' {
				for range 4 {
					if i++; i == len(b) || !isHex(b[i]) {
						return -1
					}
				}
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), b[i]) < 0 {
				return -1
			}
		}
	}
	return -1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func wordEnd(b []byte, i int, word string) int {
	if !bytes.HasPrefix(b[i:], []byte(word)) {
		return -1
	}
	return i + len(word)
}

func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(b, i)
	if i == whole || b[whole] == '0' && i > whole+1 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = skipDigits(b, fraction); i == fraction {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(b, exponent); i == exponent {
			return -1
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// SkipSpace returns the index of the first character at or after i that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
