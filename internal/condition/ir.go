package condition

import (
	"math"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// A test is a condition in the form in which it is evaluated.
type Predicate interface {
	eval(*frame) Truth
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
	s := f.value(x.path)
	return s.value, s.state != absent
}
func (x field) folded(f *frame) (string, bool) { return f.foldedText(x.path) }

func (x numberParam) load(f *frame) (any, bool)    { return f.page.numbers[x.column][f.row], true }
func (x numberParam) folded(*frame) (string, bool) { return "", false }
func (x textParam) load(f *frame) (any, bool)      { return f.text(x.column).text, true }
func (x textParam) folded(f *frame) (string, bool) { return f.text(x.column).folded, true }
func (x boolParam) load(f *frame) (any, bool)      { return f.text(x.column).text == "true", true }
func (x boolParam) folded(f *frame) (string, bool) { return "", false }
func (x listParam) load(f *frame) (any, bool)      { return f.list(x.column), true }
func (x listParam) folded(f *frame) (string, bool) { return "", false }
func (f *frame) text(column int) *internedText     { return f.texts.at(f.page.texts[column][f.row]) }
func (f *frame) list(column int) []any             { return f.texts.list(f.page.texts[column][f.row]) }

// The tests.
type (
	ConstantPredicate bool
	And               []Predicate // &&
	Or                []Predicate // ||
	Not               struct{ Predicate }
	Conditional       struct{ when, yes, no Predicate }
	IsTrue            struct{ operand } // a value that must be a boolean
	HasField          struct {          // has(x.name)
		*path
		name   string
		member *path // of the event itself: what is asked for
	}
	Equality struct {
		a, b   operand
		negate bool
	}
	Ordering struct {
		a, b operand
		op   comparison
	}
	NumberParamOrdering struct { // an event's number against a param
		field
		column int
		op     comparison
	}
	TextPredicate struct {
		a, b operand
		is   func(a, b string) bool
	}
	FoldedTextPredicate struct {
		a, b operand
		is   func(a, b string) bool
	}
	RegexPredicate struct {
		operand
		pattern *regexp.Regexp
		size    int // see regexSize
	}
	CELPredicate struct { // whatever else CEL can say
		program cel.Program
		nanos   int64 // its cost: see nanosOfProgram
	}
)

// comparison is an order that holds or not.
type comparison uint8

const (
	less comparison = iota
	lessOrEqual
	greater
	greaterOrEqual
)

// matchesOrder reports whether order (negative, zero, positive) is r.
func (r comparison) matchesOrder(order int) bool {
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

// matches reports whether x r y.
func (r comparison) matches(x, y float64) bool {
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

// isLowerBound reports whether value r border says that the value is not below it.
func (r comparison) isLowerBound() bool { return r == greater || r == greaterOrEqual }

// mirrored is r with its sides changed.
func (r comparison) mirrored() comparison {
	return [...]comparison{greater, greaterOrEqual, less, lessOrEqual}[r]
}

func (t ConstantPredicate) eval(*frame) Truth { return truthOf(bool(t)) }

func (t And) eval(f *frame) Truth {
	result := True
	for _, one := range t {
		switch one.eval(f) {
		case False:
			return False
		case Error:
			result = Error
		}
	}
	return result
}

func (t Or) eval(f *frame) Truth {
	result := False
	for _, one := range t {
		switch one.eval(f) {
		case True:
			return True
		case Error:
			result = Error
		}
	}
	return result
}

func (t Not) eval(f *frame) Truth {
	switch t.Predicate.eval(f) {
	case False:
		return True
	case True:
		return False
	}
	return Error
}

func (t Conditional) eval(f *frame) Truth {
	switch t.when.eval(f) {
	case True:
		return t.yes.eval(f)
	case False:
		return t.no.eval(f)
	}
	return Error
}

func (t IsTrue) eval(f *frame) Truth {
	v, ok := t.load(f)
	if b, isBool := v.(bool); ok && isBool {
		return truthOf(b)
	}
	return Error
}

// eval answers false where the object is there without the field, and for a
// null, a text or a number; that nothing is there, or a list, is an error.
func (t HasField) eval(f *frame) Truth {
	if t.member != nil && f.data.object {
		return truthOf(f.data.has(t.member))
	}
	s := f.value(t.path)
	if _, isList := s.value.([]any); isList || s.state == absent {
		return Error
	}
	m, _ := s.value.(map[string]any)
	_, ok := m[t.name]
	return truthOf(ok)
}

func (t *Equality) eval(f *frame) Truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	if !ok1 || !ok2 {
		return Error
	}
	return truthOf(equal(a, b) != t.negate)
}

func (t *Ordering) eval(f *frame) Truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	if !ok1 || !ok2 {
		return Error
	}
	order, ok := compare(a, b)
	if !ok {
		return unorderedResult(a, b)
	}
	return truthOf(t.op.matchesOrder(order))
}

// unorderedResult is what a comparison comes to that has no order: false with a NaN, else an
// error.
func unorderedResult(a, b any) Truth {
	switch a.(type) {
	case nil, []any, map[string]any:
		return Error
	}
	for _, v := range [...]any{a, b} {
		if x, isDouble := v.(float64); isDouble && math.IsNaN(x) {
			return False
		}
	}
	return Error
}

func (t *NumberParamOrdering) eval(f *frame) Truth {
	v, _ := t.load(f)
	x, ok := toFloat(v)
	if !ok {
		return unorderedResult(v, 0.0)
	}
	return truthOf(t.op.matches(x, f.page.numbers[t.column][f.row]))
}

func (t *TextPredicate) eval(f *frame) Truth {
	a, ok1 := t.a.load(f)
	b, ok2 := t.b.load(f)
	x, ok3 := a.(string)
	y, ok4 := b.(string)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return Error
	}
	return truthOf(t.is(x, y))
}

func (t *FoldedTextPredicate) eval(f *frame) Truth {
	a, ok1 := t.a.folded(f)
	b, ok2 := t.b.folded(f)
	if !ok1 || !ok2 {
		return Error
	}
	return truthOf(t.is(a, b))
}

func (t *RegexPredicate) eval(f *frame) Truth {
	v, ok := t.load(f)
	text, isText := v.(string)
	if !ok || !isText {
		return Error
	}
	return truthOf(t.pattern.MatchString(text))
}

func (t CELPredicate) eval(f *frame) Truth {
	v, _, err := t.program.Eval(f)
	if b, isBool := v.(types.Bool); err == nil && isBool {
		return truthOf(bool(b))
	}
	return Error
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
