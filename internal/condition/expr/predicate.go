package expr

import (
	"math"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// A Predicate is a compiled condition.
type Predicate interface {
	Eval(*Frame) Truth
}

// An Operand is a value in a predicate. It is not ok where CEL has an error.
type Operand interface {
	Load(*Frame) (v any, ok bool)
	Folded(*Frame) (text string, ok bool) // also not ok for values other than texts
}

// The operands.
type (
	Constant struct {
		value any
		fold  string // folded form of a text
	}
	Field       struct{ *Path }
	NumberParam struct{ column int }
	TextParam   struct{ column int }
	BoolParam   struct{ column int }
	ListParam   struct{ column int }
)

func (c *Constant) Load(*Frame) (any, bool) { return c.value, true }
func (c *Constant) Folded(*Frame) (string, bool) {
	_, isText := c.value.(string)
	return c.fold, isText
}

func (x Field) Load(f *Frame) (any, bool) {
	s := f.value(x.Path)
	return s.value, s.state != absent
}
func (x Field) Folded(f *Frame) (string, bool) { return f.foldedText(x.Path) }

func (x NumberParam) Load(f *Frame) (any, bool)    { return f.Page.Numbers[x.column][f.Row], true }
func (x NumberParam) Folded(*Frame) (string, bool) { return "", false }
func (x TextParam) Load(f *Frame) (any, bool)      { return f.text(x.column).Text, true }
func (x TextParam) Folded(f *Frame) (string, bool) { return f.text(x.column).Folded, true }
func (x BoolParam) Load(f *Frame) (any, bool)      { return f.text(x.column).Text == "true", true }
func (x BoolParam) Folded(f *Frame) (string, bool) { return "", false }
func (x ListParam) Load(f *Frame) (any, bool)      { return f.list(x.column), true }
func (x ListParam) Folded(f *Frame) (string, bool) { return "", false }
func (f *Frame) text(column int) *InternedText     { return f.Texts.At(f.Page.Texts[column][f.Row]) }
func (f *Frame) list(column int) []any             { return f.Texts.list(f.Page.Texts[column][f.Row]) }

// The predicates.
type (
	ConstantPredicate bool
	And               []Predicate // &&
	Or                []Predicate // ||
	Not               struct{ Predicate }
	Conditional       struct{ when, yes, no Predicate }
	IsTrue            struct{ Operand } // a value that must be a Boolean
	HasField          struct {          // has(x.name)
		*Path
		name   string
		member *Path // set where x is the event itself
	}
	Equality struct {
		A, B   Operand
		Negate bool
	}
	Ordering struct {
		a, b Operand
		op   Comparison
	}
	NumberParamOrdering struct { // compares an event's number with a param
		Field
		column int
		op     Comparison
	}
	TextPredicate struct {
		a, b Operand
		is   func(a, b string) bool
	}
	FoldedTextPredicate struct {
		a, b Operand
		is   func(a, b string) bool
	}
	RegexPredicate struct {
		Operand
		pattern *regexp.Regexp
		size    int // see lang.RegexSize
	}
	CELPredicate struct { // everything else in CEL
		program cel.Program
		nanos   int64 // see nanosOfProgram
	}
)

// Comparison is an ordering operator.
type Comparison uint8

const (
	Less Comparison = iota
	LessOrEqual
	Greater
	GreaterOrEqual
)

// MatchesOrder reports whether order (negative, zero, positive) satisfies r.
func (r Comparison) MatchesOrder(order int) bool {
	switch r {
	case Less:
		return order < 0
	case LessOrEqual:
		return order <= 0
	case Greater:
		return order > 0
	}
	return order >= 0
}

// Matches reports whether x r y is true.
func (r Comparison) Matches(x, y float64) bool {
	switch r {
	case Less:
		return x < y
	case LessOrEqual:
		return x <= y
	case Greater:
		return x > y
	}
	return x >= y
}

// IsLowerBound reports whether r makes its right side a lower bound of the left one.
func (r Comparison) IsLowerBound() bool { return r == Greater || r == GreaterOrEqual }

// Mirrored returns the operator for swapped sides.
func (r Comparison) Mirrored() Comparison {
	return [...]Comparison{Greater, GreaterOrEqual, Less, LessOrEqual}[r]
}

func (t ConstantPredicate) Eval(*Frame) Truth { return TruthOf(bool(t)) }

func (t And) Eval(f *Frame) Truth {
	result := True
	for _, one := range t {
		switch one.Eval(f) {
		case False:
			return False
		case Error:
			result = Error
		}
	}
	return result
}

func (t Or) Eval(f *Frame) Truth {
	result := False
	for _, one := range t {
		switch one.Eval(f) {
		case True:
			return True
		case Error:
			result = Error
		}
	}
	return result
}

func (t Not) Eval(f *Frame) Truth {
	switch t.Predicate.Eval(f) {
	case False:
		return True
	case True:
		return False
	}
	return Error
}

func (t Conditional) Eval(f *Frame) Truth {
	switch t.when.Eval(f) {
	case True:
		return t.yes.Eval(f)
	case False:
		return t.no.Eval(f)
	}
	return Error
}

func (t IsTrue) Eval(f *Frame) Truth {
	v, ok := t.Load(f)
	if b, isBool := v.(bool); ok && isBool {
		return TruthOf(b)
	}
	return Error
}

// Eval is false if the object exists without the field, and for a null, a text or a number. It is
// an error if the value is missing or a list.
func (t HasField) Eval(f *Frame) Truth {
	if t.member != nil && f.Data.object {
		return TruthOf(f.Data.has(t.member))
	}
	s := f.value(t.Path)
	if _, isList := s.value.([]any); isList || s.state == absent {
		return Error
	}
	m, _ := s.value.(map[string]any)
	_, ok := m[t.name]
	return TruthOf(ok)
}

func (t *Equality) Eval(f *Frame) Truth {
	a, ok1 := t.A.Load(f)
	b, ok2 := t.B.Load(f)
	if !ok1 || !ok2 {
		return Error
	}
	return TruthOf(equal(a, b) != t.Negate)
}

func (t *Ordering) Eval(f *Frame) Truth {
	a, ok1 := t.a.Load(f)
	b, ok2 := t.b.Load(f)
	if !ok1 || !ok2 {
		return Error
	}
	order, ok := compare(a, b)
	if !ok {
		return unorderedResult(a, b)
	}
	return TruthOf(t.op.MatchesOrder(order))
}

// unorderedResult is the result of comparing values without an order: false with a NaN, else an
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

func (t *NumberParamOrdering) Eval(f *Frame) Truth {
	v, _ := t.Load(f)
	x, ok := ToFloat(v)
	if !ok {
		return unorderedResult(v, 0.0)
	}
	return TruthOf(t.op.Matches(x, f.Page.Numbers[t.column][f.Row]))
}

func (t *TextPredicate) Eval(f *Frame) Truth {
	a, ok1 := t.a.Load(f)
	b, ok2 := t.b.Load(f)
	x, ok3 := a.(string)
	y, ok4 := b.(string)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return Error
	}
	return TruthOf(t.is(x, y))
}

func (t *FoldedTextPredicate) Eval(f *Frame) Truth {
	a, ok1 := t.a.Folded(f)
	b, ok2 := t.b.Folded(f)
	if !ok1 || !ok2 {
		return Error
	}
	return TruthOf(t.is(a, b))
}

func (t *RegexPredicate) Eval(f *Frame) Truth {
	v, ok := t.Load(f)
	text, isText := v.(string)
	if !ok || !isText {
		return Error
	}
	return TruthOf(t.pattern.MatchString(text))
}

func (t CELPredicate) Eval(f *Frame) Truth {
	v, _, err := t.program.Eval(f)
	if b, isBool := v.(types.Bool); err == nil && isBool {
		return TruthOf(bool(b))
	}
	return Error
}

// TextTests are CEL's own functions of two strings, FoldedTests are Fanfare's.
var (
	TextTests = map[string]func(a, b string) bool{
		"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}
	FoldedTests = map[string]func(a, b string) bool{
		"contains_ci": lang.ContainsFolded, "starts_with_ci": lang.HasFoldedPrefix,
	}
)
