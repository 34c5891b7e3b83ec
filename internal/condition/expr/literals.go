package expr

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// VisitComparedLiterals visits the literals that predicates compare with fields.
func (b *Builder) VisitComparedLiterals(e celast.Expr, visit func(celast.Expr)) {
	if s, ok := b.existsOf(e); ok {
		visit(s.other)
	}
	if e.Kind() != celast.CallKind {
		return
	}
	call := e.AsCall()
	args := call.Args()
	if c, ok := lang.CrossingOf(e); ok {
		if _, sub := ParamsIn(b, c.Now); !sub {
			visit(c.Level)
		}
		return
	}
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, arg := range args {
			b.VisitComparedLiterals(arg, visit)
		}
		return
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	case operators.In:
		if _, values, ok := b.InList(e); ok {
			visit(args[1]) // a list of strings is one literal
			for _, one := range values {
				visit(one)
			}
		} else if _, ok := b.Source(args[1]); ok {
			visit(args[0])
		}
		return
	case lang.GeoWithin:
		for _, arg := range args {
			visit(arg)
		}
		return
	default:
		if call.IsMemberFunction() && TextTests[name] != nil {
			args = append([]celast.Expr{call.Target()}, args...)
		} else if FoldedTests[name] == nil {
			return
		}
	}
	if len(args) != 2 {
		return
	}
	for i, arg := range args {
		if _, ok := b.Source(args[1-i]); ok {
			visit(arg)
		}
	}
}
