package lang

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// CEL's checker is stricter and less exact about dynamic values than CEL's evaluation:
//
//   - It refuses to compare an integer with a double by == and in, which evaluation compares by
//     value.
//   - It treats event['a'] as a value of a type to be inferred, and infers the type of the first
//     overload that fits. double(event['a']) became the double of a double, which is an error for
//     each integer.
//
// Therefore, Parse parses an expression, rewrites it, checks it, and restores it. object["name"]
// permanently becomes object.name, and a bare name becomes event.name unless a macro around it
// has a
// variable with that name. The other packages then see one spelling of each field, and the result
// does not depend on other fields in the schema. The operators below have other names and types
// while CEL checks them.
const (
	checkedEquals    = "@equals"
	checkedNotEquals = "@not_equals"
	checkedIn        = "@in_dyn"
	checkedIndex     = "@index"
)

// dynamicOperators maps each name that is used during the check to its operator and the overloads
// of the evaluation.
var dynamicOperators = map[string]struct {
	operator string
	result   *types.Type
	overload []string
}{
	checkedEquals:    {operators.Equals, types.BoolType, []string{overloads.Equals}},
	checkedNotEquals: {operators.NotEquals, types.BoolType, []string{overloads.NotEquals}},
	checkedIn:        {operators.In, types.BoolType, []string{overloads.InList, overloads.InMap}},
	checkedIndex:     {operators.Index, types.DynType, []string{overloads.IndexList, overloads.IndexMap}},
}

// dynamicNames maps operators to the names that are used during the check.
var dynamicNames = map[string]string{
	operators.Equals: checkedEquals, operators.NotEquals: checkedNotEquals, operators.In: checkedIn, operators.Index: checkedIndex,
}

// dynamicOperatorOptions declares the names that are used during the check, and a has() that
// accepts a field in brackets.
func dynamicOperatorOptions() []cel.EnvOption {
	options := []cel.EnvOption{cel.Macros(cel.GlobalMacro(operators.Has, 1, expandHas))}
	for name, loose := range dynamicOperators {
		options = append(options, cel.Function(name, cel.Overload(name+"_dyn", []*cel.Type{cel.DynType, cel.DynType}, loose.result)))
	}
	return options
}

// expandHas is CEL's has() for object.name and object["name"].
func expandHas(h cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *common.Error) {
	object, name, ok := FieldSelection(args[0])
	if !ok {
		return nil, h.NewError(args[0].ID(), "has() requires a field, as in has(event.name)")
	}
	return h.NewPresenceTest(object, name), nil
}

// Expression is the syntax tree of an expression that CEL has accepted.
type Expression struct {
	*celast.AST
	brackets  map[int64]bool // ids of fields that are written in brackets
	bareNames map[int64]bool // ids of fields that are written as bare names
	Captured  map[int64]bool // ids of bare names in a macro whose variable is event: they stay names
}

// Parse reads and checks text; isBare reports whether a name is a field of the event. If the check
// fails, p is the parsed text.
func Parse(env *cel.Env, text string, isBare func(name string) bool) (Expression, *cel.Issues) {
	read, issues := env.Parse(text)
	if issues.Err() != nil {
		return Expression{}, issues
	}
	p := Expression{AST: read.NativeRep(), brackets: map[int64]bool{}, bareNames: map[int64]bool{}, Captured: map[int64]bool{}}
	factory := celast.NewExprFactory()
	event := factory.NewIdent(celast.MaxID(p.AST)+1, "event")
	eachFreeName(p.Expr(), nil, func(e celast.Expr, hidden []string) {
		switch name := BareIdent(e); {
		case isBare == nil || !isBare(name):
		case slices.Contains(hidden, "event"):
			p.Captured[e.ID()] = true
		default:
			p.bareNames[e.ID()] = true
			e.SetKindCase(factory.NewSelect(e.ID(), event, name))
		}
	})
	rewrite(read.NativeRep().Expr(), func(e celast.Expr, call celast.CallExpr) {
		if object, name, ok := FieldSelection(e); ok {
			p.brackets[e.ID()] = true
			e.SetKindCase(factory.NewSelect(e.ID(), object, name))
		} else if name := dynamicNames[call.FunctionName()]; name != "" {
			e.SetKindCase(factory.NewCall(e.ID(), name, call.Args()...))
		}
	})
	checked, issues := env.Check(read)
	if issues.Err() != nil {
		return p, issues
	}
	p.AST = checked.NativeRep()
	rewrite(p.Expr(), func(e celast.Expr, call celast.CallExpr) {
		if loose, ok := dynamicOperators[call.FunctionName()]; ok {
			e.SetKindCase(factory.NewCall(e.ID(), loose.operator, call.Args()...))
			overload := loose.overload
			if loose.operator == operators.In && isListOfTexts(p.GetType(call.Args()[1].ID())) {
				overload = overload[:1] // the overloads for which evaluation uses a set
			}
			p.SetReference(e.ID(), celast.NewFunctionReference(overload...))
		}
	})
	return p, nil
}

// isListOfTexts reports whether a set gives the same answers as the list: a set of numbers rounds
// differently from a comparison.
func isListOfTexts(t *types.Type) bool {
	return t.Kind() == types.ListKind && t.Parameters()[0].Kind() == types.StringKind
}

// rewrite calls change with each call in e, innermost first.
func rewrite(e celast.Expr, change func(celast.Expr, celast.CallExpr)) {
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.CallKind {
			change(e, e.AsCall())
		}
	}))
}

// eachFreeName visits the names in e that are not variables of macros; hidden are the variables of
// the macros around the name.
func eachFreeName(e celast.Expr, hidden []string, visit func(e celast.Expr, hidden []string)) {
	switch e.Kind() {
	case celast.IdentKind:
		if !slices.Contains(hidden, e.AsIdent()) {
			visit(e, hidden)
		}
	case celast.ComprehensionKind:
		loop := e.AsComprehension()
		eachFreeName(loop.IterRange(), hidden, visit)
		eachFreeName(loop.AccuInit(), hidden, visit)
		inner := append(slices.Clip(hidden), loop.IterVar(), loop.AccuVar())
		if loop.HasIterVar2() {
			inner = append(inner, loop.IterVar2())
		}
		eachFreeName(loop.LoopCondition(), inner, visit)
		eachFreeName(loop.LoopStep(), inner, visit)
		eachFreeName(loop.Result(), append(slices.Clip(hidden), loop.AccuVar()), visit)
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() && IsVariable(call.Target(), "geo") && "geo."+call.FunctionName() == GeoWithin { // geo.within is the name of a function
			for _, arg := range call.Args() {
				eachFreeName(arg, hidden, visit)
			}
			return
		}
		fallthrough
	default:
		for _, part := range Children(e) {
			eachFreeName(part, hidden, visit)
		}
	}
}

// AsWritten returns a copy of e with brackets and bare names as the author wrote them.
func (p Expression) AsWritten(e celast.Expr) celast.Expr {
	factory := celast.NewExprFactory()
	e = factory.CopyExpr(e)
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		switch {
		case e.Kind() != celast.SelectKind:
		case p.bareNames[e.ID()]:
			e.SetKindCase(factory.NewIdent(e.ID(), e.AsSelect().FieldName()))
		case p.brackets[e.ID()]:
			s := e.AsSelect()
			e.SetKindCase(factory.NewCall(e.ID(), operators.Index, s.Operand(), factory.NewLiteral(0, types.String(s.FieldName()))))
		}
	}))
	return e
}
