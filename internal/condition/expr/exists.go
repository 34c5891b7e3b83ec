package expr

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// HidesName reports whether a variable is named as something else is, which it then is
// not. A field that is written bare is none: where a variable has its name it stays bare.
func (b *Builder) HidesName(variable string) bool {
	return slices.Contains([]string{"event", "sub", lang.AttributesName}, variable) || b.NoEvent && b.Event.Fields[variable] != nil
}

// ExistsPredicate is event.list.exists(x, x == value), or event.list.exists(x, x.id in values):
// whether one of the elements is the value, or one of the values.
type ExistsPredicate struct {
	list  Field
	steps []string // in each element
	is    func(f *Frame, element any) bool
}

// Eval goes over the names where the list is an object, as CEL does.
func (t *ExistsPredicate) Eval(f *Frame) Truth {
	v, ok := t.list.Load(f)
	if !ok {
		return Error
	}
	result := False
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			found, state := FollowSteps(t.steps, element)
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
	list  Source
	steps []string
	other celast.Expr // what an element is, or the list in which it is
	in    bool
}

// existsOf takes an expression apart whose other side is the same for all elements: a
// literal, a param, or a list of literals.
func (b *Builder) existsOf(e celast.Expr) (s existsExpr, ok bool) {
	q, ok := lang.QuantifierOf(e)
	if !ok || q.All || b.HidesName(q.Variable) || q.Inner.Kind() != celast.CallKind {
		return s, false
	}
	if s.list, ok = b.Steps(q.Over); !ok {
		return s, false
	}
	args := q.Inner.AsCall().Args()
	switch q.Inner.AsCall().FunctionName() {
	case operators.Equals:
		if s.steps, ok = lang.FieldSteps(args[0], q.Variable); ok {
			s.other = args[1]
		} else if s.steps, ok = lang.FieldSteps(args[1], q.Variable); ok {
			s.other = args[0]
		}
		return s, ok && b.isValue(s.other)
	case operators.In:
		s.steps, ok = lang.FieldSteps(args[0], q.Variable)
		s.other, s.in = args[1], true
		if p, isParam := b.Param(s.other); isParam {
			return s, ok && p.Kind == lang.KindList
		}
		_, isList := lang.StringLiterals(s.other)
		return s, ok && isList
	}
	return s, false
}

// isValue reports whether e is a literal or a param.
func (b *Builder) isValue(e celast.Expr) bool {
	_, isParam := b.Param(e)
	_, isLiteral := lang.Literal(e)
	return isParam || isLiteral
}

// exists returns the test of such an expression, or nil.
func (b *Builder) exists(e celast.Expr) Predicate {
	s, ok := b.existsOf(e)
	if !ok {
		return nil
	}
	t := &ExistsPredicate{list: Field{b.Path(s.list)}, steps: s.steps}
	if !s.in {
		other := b.Operand(s.other)
		t.is = func(f *Frame, element any) bool {
			v, ok := other.Load(f)
			return ok && equal(element, v)
		}
		return t
	}
	if list, ok := b.Param(s.other); ok {
		t.is = func(f *Frame, element any) bool { return f.listHas(list.Column, element) }
		return t
	}
	listed, _ := lang.StringLiterals(s.other)
	texts := make(map[string]struct{}, len(listed))
	for _, text := range listed {
		texts[text] = struct{}{}
	}
	t.is = func(_ *Frame, element any) bool {
		text, isText := element.(string)
		_, found := texts[text]
		return isText && found
	}
	return t
}
