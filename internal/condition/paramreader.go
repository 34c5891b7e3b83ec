package condition

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// readSimpleParams reads params that are written plainly: every param once, texts
// without escapes, no nesting but lists of texts. It is not ok for anything else,
// good or bad: the full reader decides on that. An import reads the params of each
// subscription twice, and this is most of what that costs.
func readSimpleParams(raw []byte, params []param) (v paramValues, ok bool) {
	r := simpleParamReader{rest: raw}
	if !r.consume('{') {
		return v, false
	}
	v = newParamValues(params)
	var seen uint64
	for n := range params {
		if n > 0 && !r.consume(',') {
			return v, false
		}
		name, isText := r.text()
		if !isText || !r.consume(':') {
			return v, false
		}
		i := slices.IndexFunc(params, func(p param) bool { return p.name == string(name) })
		if i < 0 || i >= 64 || seen&(1<<i) != 0 || !r.value(&v, &params[i]) {
			return v, false
		}
		seen |= 1 << i
	}
	return v, r.consume('}') && r.end()
}

// newParamValues has room for every param, by column.
func newParamValues(params []param) (v paramValues) {
	texts := 0
	for _, p := range params {
		if !p.isNumber() {
			texts++
		}
	}
	if texts > 0 {
		v.texts = make([]string, texts)
	}
	if numbers := len(params) - texts; numbers > 0 {
		v.numbers = make([]float64, numbers)
	}
	return v
}

// A plainReader walks over plain JSON.
type simpleParamReader struct{ rest []byte }

func (r *simpleParamReader) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\t' || r.rest[0] == '\n' || r.rest[0] == '\r') {
		r.rest = r.rest[1:]
	}
}

func (r *simpleParamReader) consume(c byte) bool {
	r.space()
	if len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func (r *simpleParamReader) end() bool {
	r.space()
	return len(r.rest) == 0
}

// text reads a string without escapes.
func (r *simpleParamReader) text() ([]byte, bool) {
	if !r.consume('"') {
		return nil, false
	}
	for i, c := range r.rest {
		switch {
		case c == '"':
			text := r.rest[:i]
			r.rest = r.rest[i+1:]
			return text, utf8.Valid(text)
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (r *simpleParamReader) value(v *paramValues, p *param) bool {
	switch p.kind {
	case kindDouble:
		f, ok := r.number()
		v.numbers[p.column] = f
		return ok
	case kindString:
		text, ok := r.text()
		v.texts[p.column] = string(text)
		return ok
	case kindBool:
		for _, word := range [...]string{"true", "false"} {
			if r.word(word) {
				v.texts[p.column] = word
				return true
			}
		}
	case kindList:
		list, ok := r.list()
		if ok {
			v.texts[p.column], ok = listText(list)
		}
		return ok
	}
	return false
}

// number reads what JSON calls a number (RFC 8259, section 6), into a double that
// is not infinite.
func (r *simpleParamReader) number() (float64, bool) {
	r.space()
	n := numberLength(r.rest)
	if n == 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.rest[:n]), 64)
	r.rest = r.rest[n:]
	return f + 0, err == nil && !math.IsInf(f, 0) // -0 becomes 0
}

// numberLength returns how long the number is with which b begins, 0 if it begins
// with none.
func numberLength[T []byte | string](b T) int {
	digits := func(from int) int {
		for from < len(b) && b[from] >= '0' && b[from] <= '9' {
			from++
		}
		return from
	}
	from := 0
	if len(b) > 0 && b[0] == '-' {
		from = 1
	}
	n := digits(from)
	if n == from || b[from] == '0' && n > from+1 {
		return 0
	}
	if n < len(b) && b[n] == '.' {
		from = n + 1
		if n = digits(from); n == from {
			return 0
		}
	}
	if n < len(b) && (b[n] == 'e' || b[n] == 'E') {
		from = n + 1
		if from < len(b) && (b[from] == '+' || b[from] == '-') {
			from++
		}
		if n = digits(from); n == from {
			return 0
		}
	}
	return n
}

func (r *simpleParamReader) word(word string) bool {
	r.space()
	if len(r.rest) < len(word) || string(r.rest[:len(word)]) != word {
		return false
	}
	r.rest = r.rest[len(word):]
	return true
}

// list returns the whole of an array of texts.
func (r *simpleParamReader) list() (json.RawMessage, bool) {
	r.space()
	whole := r.rest
	if !r.consume('[') {
		return nil, false
	}
	for first := true; !r.consume(']'); first = false {
		if !first && !r.consume(',') {
			return nil, false
		}
		if _, ok := r.text(); !ok {
			return nil, false
		}
	}
	return json.RawMessage(whole[:len(whole)-len(r.rest)]), true
}
