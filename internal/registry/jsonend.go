package registry

import "bytes"

// maxJSONDepth is how deep objects and arrays may lie in each other, as for the library.
const maxJSONDepth = 10_000

// jsonEnd returns the index behind the JSON value (RFC 8259) that begins at b[i], or -1
// where none does. It takes what json.Valid takes, in one walk: of a line in which a
// value stands nobody knows before where it ends.
func jsonEnd(b []byte, i, depth int) int {
	if i == len(b) || depth > maxJSONDepth {
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

// membersEnd is jsonEnd of an object or an array, which ends with last.
func membersEnd(b []byte, i, depth int, last byte) int {
	i = behindSpace(b, i+1)
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
			if i = behindSpace(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = behindSpace(b, i+1)
		}
		if i = jsonEnd(b, i, depth+1); i < 0 {
			return -1
		}
		i = behindSpace(b, i)
		switch {
		case i < len(b) && b[i] == last:
			return i + 1
		case i == len(b) || b[i] != ',':
			return -1
		}
		i = behindSpace(b, i+1)
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
	i = behindDigits(b, i)
	if i == whole || b[whole] == '0' && i > whole+1 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = behindDigits(b, fraction); i == fraction {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = behindDigits(b, exponent); i == exponent {
			return -1
		}
	}
	return i
}

func behindDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

func behindSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
