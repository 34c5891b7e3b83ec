package condition

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// existsPredicate is event.list.exists(x, x == value), or event.list.exists(x, x.id in values):
// whether one of the elements is the value, or one of the values.
type existsPredicate struct {
	list  field
	steps []string // in each element
	is    func(f *frame, element any) bool
}

// eval goes over the names where the list is an object, as CEL does.
func (t *existsPredicate) eval(f *frame) Truth {
	v, ok := t.list.load(f)
	if !ok {
		return Error
	}
	result := False
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			found, state := followSteps(t.steps, element)
			switch {
			case state == absent:
				result = Error
			case t.is(f, found):
				return True
			}
		}
	case map[string]any:
		for name := range v {
			switch {
			case len(t.steps) > 0: // a text has no fields
				result = Error
			case t.is(f, name):
				return True
			}
		}
	case string: // over an empty text cel-go goes as over an empty list
		if v != "" {
			return Error
		}
	default:
		return Error
	}
	return result
}

// A shared is such an expression, taken apart.
type existsExpr struct {
	list  source
	steps []string
	other celast.Expr // what an element is, or the list in which it is
	in    bool
}

// existsOf takes an expression apart whose other side is the same for all elements: a
// literal, a param, or a list of literals.
func (b *builder) existsOf(e celast.Expr) (s existsExpr, ok bool) {
	q, ok := quantifierOf(e)
	if !ok || q.all || b.hides(q.variable) || q.inner.Kind() != celast.CallKind {
		return s, false
	}
	if s.list, ok = b.steps(q.over); !ok {
		return s, false
	}
	args := q.inner.AsCall().Args()
	switch q.inner.AsCall().FunctionName() {
	case operators.Equals:
		if s.steps, ok = stepsFrom(args[0], q.variable); ok {
			s.other = args[1]
		} else if s.steps, ok = stepsFrom(args[1], q.variable); ok {
			s.other = args[0]
		}
		return s, ok && b.isValue(s.other)
	case operators.In:
		s.steps, ok = stepsFrom(args[0], q.variable)
		s.other, s.in = args[1], true
		if p, isParam := b.param(s.other); isParam {
			return s, ok && p.kind == kindList
		}
		_, isList := literalTexts(s.other)
		return s, ok && isList
	}
	return s, false
}

// isValue reports whether e is a literal or a param.
func (b *builder) isValue(e celast.Expr) bool {
	_, isParam := b.param(e)
	_, isLiteral := literal(e)
	return isParam || isLiteral
}

// exists returns the test of such an expression, or nil.
func (b *builder) exists(e celast.Expr) Predicate {
	s, ok := b.existsOf(e)
	if !ok {
		return nil
	}
	t := &existsPredicate{list: field{b.path(s.list)}, steps: s.steps}
	if !s.in {
		other := b.operand(s.other)
		t.is = func(f *frame, element any) bool {
			v, ok := other.load(f)
			return ok && equal(element, v)
		}
		return t
	}
	if list, ok := b.param(s.other); ok {
		t.is = func(f *frame, element any) bool { return f.listHas(list.column, element) }
		return t
	}
	listed, _ := literalTexts(s.other)
	texts := make(map[string]struct{}, len(listed))
	for _, text := range listed {
		texts[text] = struct{}{}
	}
	t.is = func(_ *frame, element any) bool {
		text, isText := element.(string)
		_, found := texts[text]
		return isText && found
	}
	return t
}
