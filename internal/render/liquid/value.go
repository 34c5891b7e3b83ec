package liquid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Decode turns JSON into the types that templates work with: nil, bool, string, int, float64,
// []any and map[string]any. Integers become int if they fit, so that long ids keep their
// digits.
func Decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return settleNumbers(v), nil
}

func settleNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return parseNumber(string(v))
	case []any:
		for i := range v {
			v[i] = settleNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = settleNumbers(v[k])
		}
	}
	return v
}

func parseNumber(s string) any {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil { // out of range: keep the digits
		return s
	}
	return f
}

// Lookup follows path from base and reports whether all of it exists. A step is a name or an
// index; size, first and last work as in Liquid.
func Lookup(base any, path []any) (any, bool) {
	value, _, ok := follow(base, path)
	return value, ok
}

// follow is Lookup. If the value is missing, object tells whether an object lacks it.
func follow(base any, path []any) (value any, object, ok bool) {
	for _, segment := range path {
		next, ok := step(base, segment)
		if !ok {
			_, object = base.(map[string]any)
			return nil, object, false
		}
		base = next
	}
	return base, false, true
}

func step(base, segment any) (any, bool) {
	name, named := segment.(string)
	switch b := base.(type) {
	case *Fields:
		if !named {
			return nil, false
		}
		return b.step(name)
	case nil:
		return nil, false
	case map[string]any:
		if v, ok := b[name]; ok && named {
			return v, true
		}
		return len(b), named && name == "size"
	case string:
		return utf8.RuneCountInString(b), named && name == "size"
	}
	list := reflect.ValueOf(base)
	if list.Kind() != reflect.Slice {
		return nil, false
	}
	n := list.Len()
	var i int
	switch s := segment.(type) {
	case int:
		i = s
	case float64:
		i = int(s)
	case string:
		switch name {
		case "size":
			return n, true
		case "first":
			i = 0
		case "last":
			i = n - 1
		default:
			return nil, false
		}
		if n == 0 {
			return nil, true
		}
	default:
		return nil, false
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	return list.Index(i).Interface(), true
}

// AppendValue appends the text of a value: nothing for nil, numbers in their shortest form,
// lists without separators, objects as JSON.
func AppendValue(dst []byte, value any, m Mode) []byte {
	switch v := value.(type) {
	case nil:
		return dst
	case string:
		return AppendText(dst, v, m)
	case preEscaped:
		return AppendText(dst, string(v), Plain)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case []any:
		for _, item := range v {
			dst = AppendValue(dst, item, m)
		}
		return dst
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return AppendText(dst, fmt.Sprint(v), m)
		}
		return AppendText(dst, string(text), m)
	}
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		for i := range list.Len() {
			dst = AppendValue(dst, list.Index(i).Interface(), m)
		}
		return dst
	}
	return AppendText(dst, fmt.Sprint(value), m)
}

func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a >= 1e21 || a != 0 && a < 1e-7 {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// AppendText appends s as a part needs it: line ends become LF, other control characters are
// dropped, invalid UTF-8 becomes U+FFFD, and special characters are escaped. The result depends
// on s alone.
func AppendText[T string | []byte](dst []byte, s T, m Mode) []byte {
	asItIs := &verbatimBytes[m]
	for start, i := 0, 0; ; {
		for i < len(s) && asItIs[s[i]] {
			i++
		}
		dst = append(dst, s[start:i]...)
		if i == len(s) {
			return dst
		}
		c := s[i]
		i++
		if m == JSON && c < utf8.RuneSelf {
			dst = appendJSONEscape(dst, c)
			start = i
			continue
		}
		switch c {
		case '\r':
			dst = append(dst, '\n')
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		case '\'':
			dst = append(dst, "&#39;"...)
		default:
			if c >= utf8.RuneSelf {
				end := min(len(s), i+utf8.UTFMax-1)
				r, size := utf8.DecodeRune([]byte(s[i-1 : end]))
				dst = utf8.AppendRune(dst, r)
				i += size - 1
			}
		}
		start = i
	}
}

// verbatimBytes tells which bytes need no change in each mode. It is a table because every byte
// of every value is looked up.
var verbatimBytes = func() (table [modeCount][256]bool) {
	for m := range table {
		for c := range table[m] {
			table[m][c] = ordinary(byte(c), Mode(m))
		}
	}
	return table
}()

func ordinary(c byte, m Mode) bool {
	if c >= utf8.RuneSelf || c == 0x7f {
		return false
	}
	switch c {
	case '&', '<', '>', '\'':
		return m != HTML
	case '"':
		return m == Plain
	case '\\':
		return m != JSON
	case '\t', '\n':
		return m != JSON
	}
	return c >= ' '
}

// appendJSONEscape appends a byte that needs an escape in a JSON string (RFC 8259, section 7).
func appendJSONEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

const hexDigits = "0123456789ABCDEF"

// FindJSON returns the JSON text at path and follows objects only. It reports false if the
// value is missing, or if finding it needs a decoder: escaped or repeated names, lists on the
// path, strings with escapes. raw must be valid JSON; for other input it reports false or
// returns an arbitrary part of it.
func FindJSON(raw []byte, path []string) ([]byte, bool) {
	i := skipSpace(raw, 0)
	end, direct := -1, false // of the value at i
	if len(path) == 0 {
		end, direct = skipValue(raw, i)
	}
	for _, name := range path {
		if i >= len(raw) || raw[i] != '{' {
			return nil, false
		}
		at := -1
		for i = skipSpace(raw, i+1); i < len(raw) && raw[i] != '}'; {
			endKey, directKey := skipString(raw, i)
			if endKey < 0 || !directKey {
				return nil, false
			}
			match := string(raw[i+1:endKey-1]) == name
			i = skipSpace(raw, endKey)
			if i >= len(raw) || raw[i] != ':' {
				return nil, false
			}
			i = skipSpace(raw, i+1)
			endValue, directValue := skipValue(raw, i)
			if endValue < 0 || match && at >= 0 {
				return nil, false
			}
			if match {
				at, end, direct = i, endValue, directValue
			}
			if i = skipSpace(raw, endValue); i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
		if at < 0 {
			return nil, false
		}
		i = at
	}
	if end < 0 || !direct {
		return nil, false
	}
	return raw[i:end], true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i, or -1, and whether the text
// of the string is its bytes.
func skipString(b []byte, i int) (end int, plain bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	plain = true
	ascii := true
	start := i + 1
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, plain && (ascii || utf8.Valid(b[start:i]))
		case c == '\\':
			plain = false
			i++
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return -1, false
}

// skipValue returns the index after the value that begins at i, or -1, and whether the value is
// a number, a word, or a string whose text is its bytes.
func skipValue(b []byte, i int) (end int, direct bool) {
	switch {
	case i >= len(b):
		return -1, false
	case b[i] == '"':
		return skipString(b, i)
	case b[i] == '{' || b[i] == '[':
		return skipNested(b, i), false
	}
	for end = i; end < len(b); end++ {
		switch b[end] {
		case ',', ' ', '\n', '\t', '\r', '}', ']':
			if end == i {
				return -1, false
			}
			return end, true
		}
	}
	return end, true
}

// skipNested returns the index after the object or list that begins at i, or -1.
func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, _ := skipString(b, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
