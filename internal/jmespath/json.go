package jmespath

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendJSON appends v as JavaScript's JSON.stringify writes it. Each value takes a step, so that a
// value that contains another one many times cannot fill the memory.
func (e *Evaluator) appendJSON(b []byte, v any) ([]byte, bool) {
	if !e.charge(1) {
		return nil, false
	}
	switch x := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, x), true
	case string:
		return appendText(b, x), e.chargeText(x)
	case []any:
		b = append(b, '[')
		for i, one := range x {
			if i > 0 {
				b = append(b, ',')
			}
			var ok bool
			if b, ok = e.appendJSON(b, one); !ok {
				return nil, false
			}
		}
		return append(b, ']'), true
	case map[string]any:
		if !e.charge(len(x)) {
			return nil, false
		}
		b = append(b, '{')
		for i, key := range keysOf(x) {
			if i > 0 {
				b = append(b, ',')
			}
			if !e.chargeText(key) {
				return nil, false
			}
			b = append(appendText(b, key), ':')
			var ok bool
			if b, ok = e.appendJSON(b, x[key]); !ok {
				return nil, false
			}
		}
		return append(b, '}'), true
	case reference:
		return append(b, "{}"...), true
	}
	number, _ := toNumber(v)
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return append(b, "null"...), true
	}
	return append(b, numberText(number)...), true
}

func appendText(b []byte, text string) []byte {
	b = append(b, '"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			if r < ' ' {
				b = fmt.Appendf(b, `\u%04x`, r)
			} else {
				b = utf8.AppendRune(b, r)
			}
		}
	}
	return append(b, '"')
}
