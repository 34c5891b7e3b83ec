package evaluator

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the nesting of lists and objects.
const maxDepth = 10_000

// decodeJSON reads exactly one JSON value. It replaces each byte that is not UTF-8, and each
// unpaired surrogate, with U+FFFD. If several members have the same name, the last one counts.
// The shape
// s determines the kind of numbers.
func decodeJSON(data []byte, s *shape) (value, error) {
	d := decoder{data: string(data)}
	d.space()
	v, err := d.value(s, 0)
	if err != nil {
		return value{}, err
	}
	if d.space(); d.at < len(d.data) {
		return value{}, d.problem("unexpected text after the value")
	}
	return v, nil
}

type decoder struct {
	data string
	at   int
}

func (d *decoder) problem(what string) error {
	return fmt.Errorf("at byte %d: %s", d.at, what)
}

var errDepth = errors.New("the nesting exceeds " + strconv.Itoa(maxDepth) + " levels")

func (d *decoder) space() {
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

func (d *decoder) accept(c byte) bool {
	if d.at < len(d.data) && d.data[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) value(s *shape, depth int) (value, error) {
	if d.at >= len(d.data) {
		return value{}, d.problem("the value is missing")
	}
	switch c := d.data[d.at]; {
	case c == '{' || c == '[':
		if depth >= maxDepth {
			return value{}, errDepth
		}
		d.at++
		if c == '{' {
			return d.object(s, depth+1)
		}
		return d.list(s, depth+1)
	case c == '"':
		text, err := d.text()
		return stringValue(text), err
	case c == '-' || isDigit(c):
		return d.number(s)
	}
	for _, word := range [...]struct {
		text string
		v    value
	}{{"true", trueValue}, {"false", falseValue}, {"null", nullValue}} {
		if strings.HasPrefix(d.data[d.at:], word.text) {
			d.at += len(word.text)
			return word.v, nil
		}
	}
	return value{}, d.problem("expected a value")
}

func (d *decoder) list(s *shape, depth int) (value, error) {
	list := &composite{}
	d.space()
	if d.accept(']') {
		return value{kind: kindList, ref: list}, nil
	}
	element := s.element()
	for {
		d.space()
		v, err := d.value(element, depth)
		if err != nil {
			return value{}, err
		}
		list.items = append(list.items, v)
		d.space()
		if d.accept(']') {
			return value{kind: kindList, ref: list}, nil
		}
		if !d.accept(',') {
			return value{}, d.problem("expected , or ]")
		}
	}
}

func (d *decoder) object(s *shape, depth int) (value, error) {
	object := &composite{}
	d.space()
	if d.accept('}') {
		return value{kind: kindMap, ref: object}, nil
	}
	for {
		d.space()
		if d.at >= len(d.data) || d.data[d.at] != '"' {
			return value{}, d.problem("expected a member name")
		}
		name, err := d.text()
		if err != nil {
			return value{}, err
		}
		d.space()
		if !d.accept(':') {
			return value{}, d.problem("expected :")
		}
		d.space()
		v, err := d.value(s.field(name), depth)
		if err != nil {
			return value{}, err
		}
		if at := object.findText(name); at >= 0 {
			object.items[at] = v
		} else {
			object.keys, object.items = append(object.keys, stringValue(name)), append(object.items, v)
			object.indexKey(len(object.keys) - 1)
		}
		d.space()
		if d.accept('}') {
			return value{kind: kindMap, ref: object}, nil
		}
		if !d.accept(',') {
			return value{}, d.problem("expected , or }")
		}
	}
}

// text reads the string whose opening quote is next.
func (d *decoder) text() (string, error) {
	d.at++
	start := d.at
	for d.at < len(d.data) {
		c := d.data[d.at]
		if c == '"' {
			text := d.data[start:d.at]
			d.at++
			return text, nil
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return d.longText(start)
		}
		d.at++
	}
	return "", d.problem("the string is not terminated")
}

// longText reads the rest of a string that contains escapes or invalid UTF-8.
func (d *decoder) longText(start int) (string, error) {
	var out strings.Builder
	out.WriteString(d.data[start:d.at])
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			d.at++
			return out.String(), nil
		case c < ' ':
			return "", d.problem("the string contains a control character")
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out.WriteRune(r)
		case c < utf8.RuneSelf:
			out.WriteByte(c)
			d.at++
		default:
			r, size := utf8.DecodeRuneInString(d.data[d.at:])
			out.WriteRune(r)
			d.at += size
		}
	}
	return "", d.problem("the string is not terminated")
}

func (d *decoder) escape() (rune, error) {
	if d.at+1 >= len(d.data) {
		return 0, d.problem("the string is not terminated")
	}
	c := d.data[d.at+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return 0, d.problem("unknown escape sequence")
		}
		d.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, ok := d.hex()
	if !ok {
		return 0, d.problem(`\u without four digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	after := d.at
	if low, ok := d.hex(); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
	}
	d.at = after
	return utf8.RuneError, nil
}

// hex reads \uXXXX, or nothing if the next characters are others.
func (d *decoder) hex() (rune, bool) {
	if d.at+6 > len(d.data) || d.data[d.at:d.at+2] != `\u` {
		return 0, false
	}
	digits := d.data[d.at+2 : d.at+6]
	for i := range digits {
		if !isHex(digits[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	d.at += 6
	return rune(n), err == nil
}

// number reads a number. It is a double if s requires that; else an integer, if it is written as
// one and has 64 bits, or if s requires an integer and it is a whole number.
func (d *decoder) number(s *shape) (value, error) {
	start, written := d.at, true
	d.accept('-')
	switch digits := d.at; {
	case d.accept('0'):
	default:
		if d.at = span(d.data, d.at, isDigit); d.at == digits {
			return value{}, d.problem("the number has no digits")
		}
	}
	if d.accept('.') {
		written = false
		digits := d.at
		if d.at = span(d.data, d.at, isDigit); d.at == digits {
			return value{}, d.problem("the decimal point is not followed by a digit")
		}
	}
	if d.accept('e') || d.accept('E') {
		written = false
		if !d.accept('+') {
			d.accept('-')
		}
		digits := d.at
		if d.at = span(d.data, d.at, isDigit); d.at == digits {
			return value{}, d.problem("the exponent has no digits")
		}
	}
	text := d.data[start:d.at]
	switch {
	case s.number() == numberDouble:
	case written:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return intValue(n), nil
		}
	case s.number() == numberInteger:
		if n, ok := integral(text); ok {
			return intValue(n), nil
		}
	}
	return doubleValue(parseDouble(text)), nil
}

// parseDouble converts a JSON number. A number outside the range of doubles is infinite.
func parseDouble(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN() // the caller has checked its characters
	}
	return f
}

// integral returns the exact value of a number with a fraction or an exponent that is a whole
// number of 64 bits.
func integral(text string) (int64, bool) {
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "-", rest
	}
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(text[i+1:])
		if err != nil || e > maxDepth || e < -maxDepth {
			e = 2 * maxDepth // so large or so small that only zero is an integer
			if strings.HasPrefix(text[i+1:], "-") {
				e = -e
			}
		}
		exponent, text = e, text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	exponent -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	for exponent < 0 && strings.HasSuffix(digits, "0") {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	if digits == "" {
		return 0, true
	}
	if exponent < 0 || len(digits)+exponent > 19 {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+digits+strings.Repeat("0", exponent), 10, 64)
	return n, err == nil
}
