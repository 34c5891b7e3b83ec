package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// decode makes of JSON what templates work with: nil, bool, string, int,
// float64, []any and map[string]any. Whole numbers become int where they fit,
// so that long ids keep their digits.
func decode(raw json.RawMessage) (any, error) {
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
		return number(string(v))
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

func number(s string) any {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil { // out of range: keep the digits
		return s
	}
	return f
}

// lookup follows path from base and reports whether all of it exists. A segment
// is a name or an index; size, first and last work as in Liquid.
func lookup(base any, path []any) (any, bool) {
	value, _, ok := follow(base, path)
	return value, ok
}

// follow is lookup. Where the value is not there, object tells whether there is an
// object that lacks it.
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
	case *fields:
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

// appendValue appends the text of a value: nothing for nil, numbers in their
// shortest form, lists without separator, objects as JSON.
func appendValue(dst []byte, value any, m mode) []byte {
	switch v := value.(type) {
	case nil:
		return dst
	case string:
		return appendText(dst, v, m)
	case safe:
		return appendText(dst, string(v), plain)
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
			dst = appendValue(dst, item, m)
		}
		return dst
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return appendText(dst, fmt.Sprint(v), m)
		}
		return appendText(dst, string(text), m)
	}
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		for i := range list.Len() {
			dst = appendValue(dst, list.Index(i).Interface(), m)
		}
		return dst
	}
	return appendText(dst, fmt.Sprint(value), m)
}

func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a >= 1e21 || a != 0 && a < 1e-7 {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendText appends s as it may stand in a part: line ends become LF, other
// control characters vanish, what is not UTF-8 becomes U+FFFD, and what means
// something to the part is escaped. The result depends on s alone and not on its
// neighbours.
func appendText[T string | []byte](dst []byte, s T, m mode) []byte {
	asItIs := &asTheyAre[m]
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
		if m == quoted && c < utf8.RuneSelf {
			dst = appendInQuotes(dst, c)
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

// asTheyAre are the bytes that are ordinary in each mode: a table, since every byte of
// every value is looked up in it.
var asTheyAre = func() (table [modes][256]bool) {
	for m := range table {
		for c := range table[m] {
			table[m][c] = ordinary(byte(c), mode(m))
		}
	}
	return table
}()

func ordinary(c byte, m mode) bool {
	if c >= utf8.RuneSelf || c == 0x7f {
		return false
	}
	switch c {
	case '&', '<', '>', '\'':
		return m != markup
	case '"':
		return m == plain
	case '\\':
		return m != quoted
	case '\t', '\n':
		return m != quoted
	}
	return c >= ' '
}

// appendInQuotes appends what may not stand between the quotes of JSON as it is (RFC
// 8259, section 7).
func appendInQuotes(dst []byte, c byte) []byte {
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
