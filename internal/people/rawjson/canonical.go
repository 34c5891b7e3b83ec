// Package rawjson works on the text of JSON values without decoding them, because imports read
// hundreds of thousands of objects a second. Canonical writes an object in the form that is
// compared; End finds the end of a value. The registry uses both for subscriptions. The package
// keeps no state.
package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Canonical returns a valid object in the form that is compared: members sorted, numbers as short
// as possible, no spaces. It returns nil for an empty object.
func Canonical(object []byte) []byte {
	if isCanonical(object) {
		return object
	}
	var members map[string]any
	if json.Unmarshal(object, &members) != nil || len(members) == 0 {
		return nil
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if e.Encode(members) != nil {
		return nil
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// isCanonical reports whether a valid object is certainly in the canonical form. It also returns
// false for some canonical objects: for texts with escapes, numbers with an exponent or with more
// than 15 digits, and values that are nested deeper than a list.
func isCanonical(object []byte) bool {
	i := 0
	take := func(c byte) bool {
		if i < len(object) && object[i] == c {
			i++
			return true
		}
		return false
	}
	text := func() ([]byte, bool) {
		n := plainText(object[i:])
		i += n
		return object[i-n : i], n > 0
	}
	value := func() bool {
		n := plainText(object[i:])
		if n == 0 {
			n = plainWord(object[i:])
		}
		i += n
		return n > 0
	}
	if !take('{') {
		return false
	}
	var before []byte
	for first := true; first || take(','); first = false {
		name, ok := text()
		if !ok || !first && bytes.Compare(name[:len(name)-1], before) <= 0 || !take(':') {
			return false
		}
		before = name[:len(name)-1] // without the quote, which sorts before other characters
		if !take('[') {
			if !value() {
				return false
			}
			continue
		}
		for first := true; !take(']'); first = false {
			if !first && !take(',') || !value() {
				return false
			}
		}
	}
	return take('}') && i == len(object)
}

// plainText returns the length of the string at the beginning of b if the encoder would write it
// so, else 0.
func plainText(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	ascii := true
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if !ascii && (!utf8.Valid(b[:i]) || bytes.Contains(b[:i], []byte("\u2028")) || bytes.Contains(b[:i], []byte("\u2029"))) {
				return 0
			}
			return i + 1
		case c == '\\' || c < ' ':
			return 0
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return 0
}

// plainWord does the same for true, false and short numbers: a number of at most 15 digits has no
// shorter spelling.
func plainWord(b []byte) int {
	n := 0
	for n < len(b) && b[n] != ',' && b[n] != '}' && b[n] != ']' {
		n++
	}
	word := b[:n]
	if string(word) == "true" || string(word) == "false" {
		return n
	}
	digits := bytes.TrimPrefix(word, []byte("-"))
	whole, fraction, dotted := bytes.Cut(digits, []byte("."))
	switch {
	case len(whole) == 0 || len(whole)+len(fraction) > 15 || !onlyDigits(whole) || !onlyDigits(fraction):
		return 0
	case whole[0] == '0' && (len(whole) > 1 || !dotted && len(digits) < len(word)): // 007, -0
		return 0
	case dotted && (len(fraction) == 0 || fraction[len(fraction)-1] == '0'):
		return 0
	case dotted && whole[0] == '0' && len(fraction) > 5 && onlyZeros(fraction[:6]): // 1e-7
		return 0
	}
	return n
}

func onlyDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func onlyZeros(b []byte) bool { return len(bytes.Trim(b, "0")) == 0 }
