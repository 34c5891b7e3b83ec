package expr

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// HidesName reports whether a variable hides another name. Bare fields do not count: a name that a
// macro uses as its variable stays a name (see lang.Parse).
func (b *Builder) HidesName(variable string) bool {
	return slices.Contains([]string{"event", "sub", lang.AttributesName}, variable) || b.NoEvent && b.Event.Fields[variable] != nil
}

// ExistsPredicate is event.list.exists(x, x == value), or event.list.exists(x, x.id in values).
type ExistsPredicate struct {
	list  Field
	steps []string // from the element to the compared value
	is    func(f *Frame, element any) bool
}

// Eval visits the names if the list is an object, as CEL does.
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
	case string: // cel-go treats an empty text like an empty list
		if v != "" {
			return Error
		}
	default:
		return Error
	}
	return result
}

// An existsExpr is such an expression, split into its parts.
type existsExpr struct {
	list  Source
	steps []string
	other celast.Expr // the value that an element equals, or the list that contains it
	in    bool
}

// existsOf splits an expression whose other side is the same for all elements: a literal, a param,
// or a list of literals.
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

// exists returns the predicate of such an expression, or nil.
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
