package lang

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// listMark begins a text that represents a list. No other text begins with it, because JSON
// strings are valid UTF-8.
const listMark = "\xff"

// listText turns a JSON array of strings into the text that represents it, so that equal lists are
// stored and evaluated once. The order counts, as it does in CEL. It is not ok for anything else.
func listText(raw json.RawMessage) (string, bool) {
	var given []*string // pointers, because null is not a string
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &given) != nil {
		return "", false
	}
	for _, one := range given {
		if one == nil {
			return "", false
		}
	}
	text, err := json.Marshal(given)
	return listMark + string(text), err == nil
}

// TextOfList returns the text that represents a list of values.
func TextOfList(values []string) string {
	text, _ := json.Marshal(values) // strings are always valid JSON
	return listMark + string(text)
}

// ReadListText returns the list that a text represents; not ok for another text.
func ReadListText(text string) (list []any, ok bool) {
	if len(text) == 0 || text[:1] != listMark {
		return nil, false
	}
	if err := json.Unmarshal([]byte(text[1:]), &list); err != nil {
		panic("condition: the text does not represent a list: " + err.Error()) // listText made the text
	}
	return list, true
}

// readSimpleParams reads params in simple JSON: every param once, strings without escapes, no
// nesting except lists of strings. If it is not ok, readAnyParams decides whether the params are
// valid. An import reads the params of each subscription twice, and most of its time would go into
// a full JSON reader.
func readSimpleParams(raw []byte, params []Param) (v ParamValues, ok bool) {
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
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == string(name) })
		if i < 0 || i >= 64 || seen&(1<<i) != 0 || !r.value(&v, &params[i]) {
			return v, false
		}
		seen |= 1 << i
	}
	return v, r.consume('}') && r.end()
}

// newParamValues returns values with an element for every param.
func newParamValues(params []Param) (v ParamValues) {
	texts := 0
	for _, p := range params {
		if !p.IsNumber() {
			texts++
		}
	}
	if texts > 0 {
		v.Texts = make([]string, texts)
	}
	if numbers := len(params) - texts; numbers > 0 {
		v.Numbers = make([]float64, numbers)
	}
	return v
}

// A simpleParamReader reads simple JSON from left to right.
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

func (r *simpleParamReader) value(v *ParamValues, p *Param) bool {
	switch p.Kind {
	case KindDouble:
		f, ok := r.number()
		v.Numbers[p.Column] = f
		return ok
	case KindString:
		text, ok := r.text()
		v.Texts[p.Column] = string(text)
		return ok
	case KindBool:
		for _, word := range [...]string{"true", "false"} {
			if r.word(word) {
				v.Texts[p.Column] = word
				return true
			}
		}
	case KindList:
		list, ok := r.list()
		if ok {
			v.Texts[p.Column], ok = listText(list)
		}
		return ok
	}
	return false
}

// number reads a JSON number (RFC 8259, section 6) that fits into a finite double.
func (r *simpleParamReader) number() (float64, bool) {
	r.space()
	n := NumberLength(r.rest)
	if n == 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.rest[:n]), 64)
	r.rest = r.rest[n:]
	return f + 0, err == nil && !math.IsInf(f, 0) // -0 becomes 0
}

// NumberLength returns the length of the JSON number at the start of b, 0 if there is none.
func NumberLength[T []byte | string](b T) int {
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

// list returns the text of an array of strings.
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

// A Param is a value that every subscription to a rule provides.
type Param struct {
	Name   string
	Kind   Kind // KindDouble, KindString, KindBool, or KindList of strings
	Column int  // among the numbers or among the texts of a row
}

// IsNumber reports whether the param is one of a row's numbers; otherwise it is one of its texts.
func (p Param) IsNumber() bool { return p.Kind == KindDouble }

// expected describes the valid values in an error message.
func (p Param) expected() string {
	if p.Kind == KindList {
		return "a list of strings"
	}
	return p.Kind.String()
}

// ReadParamTypes turns the params that a rule declares into columns, in the order of their names.
func ReadParamTypes(rule string, types map[string]string) ([]Param, error) {
	params := make([]Param, 0, len(types))
	for name := range types {
		params = append(params, Param{Name: name})
	}
	slices.SortFunc(params, func(a, b Param) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	var numbers, texts int
	for i := range params {
		p := &params[i]
		where := rule + "/params" + Pointer(p.Name)
		if !identifier.MatchString(p.Name) {
			return nil, Invalid(where, "the name of a param must consist of letters, digits and _, and must not begin with a digit")
		}
		switch types[p.Name] {
		case "number":
			p.Kind, p.Column = KindDouble, numbers
			numbers++
		case "string":
			p.Kind, p.Column = KindString, texts
			texts++
		case "boolean":
			p.Kind, p.Column = KindBool, texts
			texts++
		case "strings":
			p.Kind, p.Column = KindList, texts
			texts++
		default:
			e := Invalid(where, "unknown type %q of param %q", types[p.Name], p.Name)
			e.Hint = "use number, string, boolean or strings"
			return nil, e
		}
	}
	return params, nil
}

// ParamValues are the params of one subscription, in the order of the columns of its rule.
type ParamValues struct {
	Numbers []float64
	Texts   []string // a Boolean is "true" or "false", a list is its listText
}

// ReadParams checks raw against params: it must be an object with exactly these members. The first
// mistake is the error, and its details are the others.
func ReadParams(raw json.RawMessage, params []Param) (ParamValues, error) {
	if v, ok := readSimpleParams(raw, params); ok {
		return v, nil
	}
	return readAnyParams(raw, params)
}

// readAnyParams reads every valid JSON object.
func readAnyParams(raw json.RawMessage, params []Param) (ParamValues, error) {
	var given map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return ParamValues{}, Invalid("/params", "the params are not a JSON object")
		}
	}
	var v ParamValues
	var faults []*fanfare.Error
	for _, p := range params {
		text, ok := given[p.Name]
		if !ok {
			faults = append(faults, Invalid(Pointer("params", p.Name), "param %q is missing; it must be %s", p.Name, p.expected()))
			continue
		}
		if !v.readValue(text, p) {
			faults = append(faults, Invalid(Pointer("params", p.Name), "param %q must be %s", p.Name, p.expected()))
		}
	}
	if len(faults) > 0 || len(given) > len(params) {
		faults = append(faults, unknownParams(given, params)...)
	}
	if len(faults) > 0 {
		first := faults[0]
		first.Details = faults[1:]
		return ParamValues{}, first
	}
	return v, nil
}

func (v *ParamValues) readValue(text json.RawMessage, p Param) bool {
	switch p.Kind {
	case KindDouble:
		f, err := strconv.ParseFloat(string(text), 64)
		// ParseFloat also accepts inf and hexadecimal numbers, which the JSON reader has refused.
		if err != nil || math.IsInf(f, 0) {
			return false
		}
		v.Numbers = append(v.Numbers, f+0) // -0 becomes 0
	case KindString:
		var s string
		if len(text) == 0 || text[0] != '"' || json.Unmarshal(text, &s) != nil {
			return false
		}
		v.Texts = append(v.Texts, s)
	case KindBool:
		s := string(text)
		if s != "true" && s != "false" {
			return false
		}
		v.Texts = append(v.Texts, s)
	case KindList:
		list, ok := listText(text)
		if !ok {
			return false
		}
		v.Texts = append(v.Texts, list)
	}
	return true
}

func unknownParams(given map[string]json.RawMessage, params []Param) []*fanfare.Error {
	sc := Scope{Params: params}
	var faults []*fanfare.Error
	for name := range given {
		if _, ok := sc.Param(name); !ok {
			faults = append(faults, UnknownMember(Invalid(Pointer("params", name), ""), "param", name, sc.paramNames()))
		}
	}
	slices.SortFunc(faults, func(a, b *fanfare.Error) int { return bytes.Compare([]byte(a.Pointer), []byte(b.Pointer)) })
	return faults
}
