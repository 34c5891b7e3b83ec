package condition

import (
	"math"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// A test is a condition in the form in which it is evaluated.
type test interface {
	eval(*frame) truth
}

// An operand is a value inside a test. It is not ok where CEL has an error.
type operand interface {
	load(*frame) (v any, ok bool)
	folded(*frame) (text string, ok bool) // not ok where it is no text either
}

// The operands.
type (
	constant struct {
		value any
		fold  string // of a text
	}
	field       struct{ *path }
	numberParam struct{ column int }
	textParam   struct{ column int }
	boolParam   struct{ column int }
	listParam   struct{ column int }
)

func (c *constant) load(*frame) (any, bool) { return c.value, true }
func (c *constant) folded(*frame) (string, bool) {
	_, isText := c.value.(string)
	return c.fold, isText
}

func (x field) load(f *frame) (any, bool) {
	s := f.read(x.path)
	return s.value, s.state != absent
}
func (x field) folded(f *frame) (string, bool) { return f.fold(x.path) }

func (x numberParam) load(f *frame) (any, bool)    { return f.page.numbers[x.column][f.row], true }
func (x numberParam) folded(*frame) (string, bool) { return "", false }
func (x textParam) load(f *frame) (any, bool)      { return f.text(x.column).text, true }
func (x textParam) folded(f *frame) (string, bool) { return f.text(x.column).folded, true }
func (x boolParam) load(f *frame) (any, bool)      { return f.text(x.column).text == "true", true }
func (x boolParam) folded(f *frame) (string, bool) { return "", false }
func (x listParam) load(f *frame) (any, bool)      { return f.list(x.column), true }
func (x listParam) folded(f *frame) (string, bool) { return "", false }
func (f *frame) text(column int) *internedText     { return f.texts.at(f.page.texts[column][f.row]) }
func (f *frame) list(column int) []any             { return f.texts.lists[f.page.texts[column][f.row]].values }

// The tests.
type (
	literalTest bool
	allOf       []test // &&
	anyOf       []test // ||
	negation    struct{ test }
	choice      struct{ when, then, otherwise test }
	holds       struct{ operand } // a value that must be a boolean
	hasField    struct {          // has(x.name)
		*path
		name   string
		member *path // of the event itself: what is asked for
	}
	equality struct {
		a, b   operand
		negate bool
	}
	ordering struct {
		a, b operand
		op   relation
	}
	numberOrdering struct { // an event's number against a param
		field
		column int
		op     relation
	}
	textTest struct {
		a, b operand
		is   func(a, b string) bool
	}
	foldedTest struct {
		a, b operand
		is   func(a, b string) bool
	}
	regexTest struct {
		operand
		pattern *regexp.Regexp
		size    int // see regexSize
	}
	program struct { // whatever else CEL can say
		cel.Program
		nanos int64 // its cost: see nanosOfProgram
	}
)

// relation is an order that holds or not.
type relation uint8

const (
	less relation = iota
	lessOrEqual
	greater
	greaterOrEqual
)

// holds reports whether order (negative, zero, positive) is r.
func (r relation) holds(order int) bool {
	switch r {
	case less:
		return order < 0
	case lessOrEqual:
		return order <= 0
	case greater:
		return order > 0
	}
	return order >= 0
}

// orders reports whether x r y.
func (r relation) orders(x, y float64) bool {
	switch r {
	case less:
		return x < y
	case lessOrEqual:
		return x <= y
	case greater:
		return x > y
	}
	return x >= y
}

// isLower reports whether value r border says that the value is not below it.
func (r relation) isLower() bool { return r == greater || r == greaterOrEqual }

// mirrored is r with its sides changed.
func (r relation) mirrored() relation {
	return [...]relation{greater, greaterOrEqual, less, lessOrEqual}[r]
}

func (t literalTest) eval(*frame) truth { return truthOf(bool(t)) }

func (t allOf) eval(f *frame) truth {
	result := yes
	for _, one := range t {
		switch one.eval(f) {
		case no:
			return no
		case fault:
			result = fault
		}
	}
	return result
}

func (t anyOf) eval(f *frame) truth {
	result := no
	for _, one := range t {
		switch one.eval(f) {
		case yes:
			return yes
		case fault:
			result = fault
		}
	}
	return result
}

func (t negation) eval(f *frame) truth {
	switch t.test.eval(f) {
	case no:
		return yes
	case yes:
		return no
	}
	return fault
}

func (t choice) eval(f *frame) truth {
	switch t.when.eval(f) {
	case yes:
		return t.then.eval(f)
	case no:
		return t.otherwise.eval(f)
	}
	return fault
}

func (t holds) eval(f *frame) truth {
	v, ok := t.load(f)
	if b, isBool := v.(bool); ok && isBool {
		return truthOf(b)
	}
	return fault
}

// eval answers false where the object is there without the field, and for a
// null, a text or a number; that nothing is there, or a list, is an error.
func (t hasField) eval(f *frame) truth {
	if t.member != nil && f.data.object {
		return truthOf(f.data.has(t.member))
	}
	s := f.read(t.path)
	if _, isList := s.value.([]any); isList || s.state == absent {
		return fault
	}
	m, _ := s.value.(map[string]any)
	_, ok := m[t.name]
	return truthOf(ok)
}

func (t *equality) eval(f *frame) truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	if !ok1 || !ok2 {
		return fault
	}
	return truthOf(equal(a, b) != t.negate)
}

func (t *ordering) eval(f *frame) truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	if !ok1 || !ok2 {
		return fault
	}
	order, ok := compare(a, b)
	if !ok {
		return unordered(a, b)
	}
	return truthOf(t.op.holds(order))
}

// unordered is what a comparison comes to that has no order: false with a NaN, else an
// error.
func unordered(a, b any) truth {
	switch a.(type) {
	case nil, []any, map[string]any:
		return fault
	}
	for _, v := range [...]any{a, b} {
		if x, isDouble := v.(float64); isDouble && math.IsNaN(x) {
			return no
		}
	}
	return fault
}

func (t *numberOrdering) eval(f *frame) truth {
	v, _ := t.load(f)
	x, ok := toFloat(v)
	if !ok {
		return unordered(v, 0.0)
	}
	return truthOf(t.op.orders(x, f.page.numbers[t.column][f.row]))
}

func (t *textTest) eval(f *frame) truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	x, ok3 := a.(string)
	y, ok4 := b.(string)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return fault
	}
	return truthOf(t.is(x, y))
}

func (t *foldedTest) eval(f *frame) truth {
	a, ok1 := t.a.folded(f)
	b, ok2 := t.b.folded(f)
	if !ok1 || !ok2 {
		return fault
	}
	return truthOf(t.is(a, b))
}

func (t *regexTest) eval(f *frame) truth {
	v, ok := t.load(f)
	text, isText := v.(string)
	if !ok || !isText {
		return fault
	}
	return truthOf(t.pattern.MatchString(text))
}

func (t program) eval(f *frame) truth {
	v, _, err := t.Eval(f)
	if b, isBool := v.(types.Bool); err == nil && isBool {
		return truthOf(bool(b))
	}
	return fault
}

// textTests are CEL's own functions of two strings, foldedTests ours.
var (
	textTests = map[string]func(a, b string) bool{
		"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}
	foldedTests = map[string]func(a, b string) bool{
		"contains_ci": containsFolded, "starts_with_ci": startsFolded,
	}
)
