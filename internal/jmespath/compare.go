package jmespath

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

func lowerCase(text string) string        { return strings.ToLower(text) }
func containsText(text, part string) bool { return strings.Contains(text, part) }

// toNumber returns a number of decoded JSON as a double.
func toNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	case int:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil || !math.IsNaN(f) && f != 0
	}
	return 0, false
}

// isTrue is the truth of a value: null, false and an empty text, list or object are false.
func isTrue(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	case string:
		return x != ""
	case []any:
		return len(x) > 0
	case map[string]any:
		return len(x) > 0
	}
	return true
}

// typeName is the result of type().
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case reference:
		return "expref"
	}
	return "number"
}

// equal compares two values with everything in them. Values of different types differ.
func (e *Evaluator) equal(a, b any) (any, bool) {
	same, ok := e.same(a, b)
	return same, ok
}

func (e *Evaluator) same(a, b any) (same, ok bool) {
	if !e.charge(1) {
		return false, false
	}
	switch x := a.(type) {
	case nil:
		return b == nil, true
	case bool:
		y, isBool := b.(bool)
		return isBool && x == y, true
	case string:
		y, isText := b.(string)
		return isText && x == y, e.chargeText(x)
	case []any:
		y, isList := b.([]any)
		if !isList || len(x) != len(y) {
			return false, true
		}
		for i := range x {
			if same, ok := e.same(x[i], y[i]); !same || !ok {
				return false, ok
			}
		}
		return true, true
	case map[string]any:
		y, isObject := b.(map[string]any)
		if !isObject || len(x) != len(y) {
			return false, true
		}
		for key, value := range x {
			other, known := y[key]
			if !known {
				return false, true
			}
			if same, ok := e.same(value, other); !same || !ok {
				return false, ok
			}
		}
		return true, true
	case reference:
		y, isReference := b.(reference)
		return isReference && x == y, true
	}
	x, _ := toNumber(a)
	y, isNumber := toNumber(b)
	return isNumber && x == y, true
}

// isSame is JavaScript's === of values that indexOf finds in a list: lists and objects are the same
// only as the same value in memory.
func isSame(a, b any) bool {
	switch a.(type) {
	case []any, map[string]any:
		if typeName(a) != typeName(b) {
			return false
		}
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		return x.Pointer() == y.Pointer() && x.Len() == y.Len()
	}
	if x, isNumber := toNumber(a); isNumber {
		y, isNumber := toNumber(b)
		return isNumber && x == y
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// ordered is <, <=, > or >= of JavaScript: two texts compare by UTF-16 code unit, and anything else
// as numbers.
func (e *Evaluator) ordered(operator tokenKind, a, b any) (any, bool) {
	x, y := primitive(a), primitive(b)
	s, isText1 := x.(string)
	t, isText2 := y.(string)
	if !e.chargeText(s) || !e.chargeText(t) {
		return nil, false
	}
	order := 0
	if isText1 && isText2 {
		order = compareUnits(s, t)
	} else {
		m, n := numberOf(x), numberOf(y)
		switch {
		case m < n:
			order = -1
		case m > n:
			order = 1
		case m != n: // NaN has no order
			return false, true
		}
	}
	switch operator {
	case tokenLess:
		return order < 0, true
	case tokenLessEqual:
		return order <= 0, true
	case tokenGreater:
		return order > 0, true
	}
	return order >= 0, true
}

// primitive is JavaScript's conversion of a value before it is compared.
func primitive(v any) any {
	switch x := v.(type) {
	case map[string]any, reference:
		return "[object Object]"
	case []any:
		return joinedText(x)
	}
	return v
}

// maxJoined is the length above which the text of a list is cut; only comparisons of lists use it.
const maxJoined = 1 << 10

// joinedText is JavaScript's text of a list.
func joinedText(list []any) string {
	var b strings.Builder
	for i, one := range list {
		if b.Len() > maxJoined {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if one != nil {
			b.WriteString(textOf(one))
		}
	}
	return b.String()
}

// textOf is JavaScript's String(v).
func textOf(v any) string {
	switch x := primitive(v).(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case string:
		return x
	default:
		number, _ := toNumber(x)
		return numberText(number)
	}
}

// numberText is JavaScript's text of a number.
func numberText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	case x == 0:
		return "0"
	}
	if size := math.Abs(x); size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	text := strconv.FormatFloat(x, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// numberOf is JavaScript's Number(v) of null, a Boolean, a number or a text.
func numberOf(v any) float64 {
	switch x := v.(type) {
	case nil:
		return 0
	case bool:
		if x {
			return 1
		}
		return 0
	case string:
		return parseNumber(x)
	}
	number, _ := toNumber(v)
	return number
}

// parseNumber is JavaScript's Number(text): NaN for a text that is no number, 0 for an empty one.
func parseNumber(text string) float64 {
	text = strings.TrimFunc(text, isSpace)
	sign, digits := 1.0, text
	if strings.HasPrefix(digits, "-") {
		sign, digits = -1, digits[1:]
	} else {
		digits = strings.TrimPrefix(digits, "+")
	}
	switch {
	case text == "":
		return 0
	case digits == "Infinity":
		return sign * math.Inf(1)
	case len(text) > 2 && text[0] == '0' && strings.IndexByte("xXoObB", text[1]) >= 0:
		base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[text[1]|0x20]
		return parseInBase(text[2:], base)
	case strings.Trim(digits, "0123456789.eE+-") != "" || strings.IndexByte("+-", (digits + "+")[0]) >= 0:
		return math.NaN()
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(number, 0) {
		return math.NaN()
	}
	return sign * number
}

func parseInBase(digits string, base int) float64 {
	var sum float64
	for i := range len(digits) {
		digit, err := strconv.ParseUint(digits[i:i+1], base, 8)
		if err != nil {
			return math.NaN()
		}
		sum = sum*float64(base) + float64(digit)
	}
	return sum
}

// isSpace reports whether JavaScript trims r.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}

// compareUnits compares two texts by UTF-16 code unit. The order differs from that of the runes only
// between runes beyond the basic plane and the last runes inside it.
func compareUnits(s, t string) int {
	i := 0
	for i < len(s) && i < len(t) && s[i] == t[i] {
		i++
	}
	for i > 0 && i < len(s) && i < len(t) && !utf8.RuneStart(s[i]) { // to the start of the rune
		i--
	}
	if i == len(s) || i == len(t) {
		return min(1, max(-1, len(s)-len(t)))
	}
	a, _ := utf8.DecodeRuneInString(s[i:])
	b, _ := utf8.DecodeRuneInString(t[i:])
	if a > 0xffff != (b > 0xffff) {
		if a > 0xffff {
			a = firstSurrogate(a)
		} else {
			b = firstSurrogate(b)
		}
	}
	return min(1, max(-1, int(a)-int(b)))
}

// firstSurrogate returns the first of the two UTF-16 code units of r.
func firstSurrogate(r rune) rune { return 0xd800 + (r-0x10000)>>10 }

// lengthInUnits is the length of a text in UTF-16 code units.
func lengthInUnits(text string) (length int) {
	for _, r := range text {
		if length++; r > 0xffff {
			length++
		}
	}
	return length
}
