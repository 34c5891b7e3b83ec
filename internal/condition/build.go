package condition

import (
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A builder turns checked expressions into tests. What it has no test for, it
// hands to cel-go: a whole condition or any operand of &&, ||, ! and ?:.
type builder struct {
	*scope
	ast   expression
	taken map[int64]param // literals that are params, by expression
	paths []*path         // of the tests built, to be linked before they are evaluated
	err   error           // of planning a CEL program
}

// build returns the test of e, which must not be inside a macro.
func (b *builder) build(e celast.Expr) Predicate {
	switch e.Kind() {
	case celast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Bool); ok {
			return ConstantPredicate(v)
		}
	case celast.IdentKind:
		if x := b.operand(e); x != nil {
			return IsTrue{x}
		}
	case celast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			if object, ok := b.steps(s.Operand()); ok {
				t := HasField{path: b.path(object), name: s.FieldName()}
				if object.root == nil && len(object.steps) == 0 {
					t.member = b.path(source{steps: []string{s.FieldName()}})
				}
				return t
			}
		} else if x := b.operand(e); x != nil {
			return IsTrue{x}
		}
	case celast.CallKind:
		if t := b.call(e); t != nil {
			return t
		}
	case celast.ComprehensionKind:
		if t := b.exists(e); t != nil {
			return t
		}
	}
	return b.program(e)
}

// call returns the test of a call, or nil where there is none.
func (b *builder) call(e celast.Expr) Predicate {
	call := e.AsCall()
	args := call.Args()
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd:
		return And(b.buildAll(e, name, nil))
	case operators.LogicalOr:
		return Or(b.buildAll(e, name, nil))
	case operators.LogicalNot:
		return Not{b.build(args[0])}
	case operators.Conditional:
		return Conditional{b.build(args[0]), b.build(args[1]), b.build(args[2])}
	case operators.Index:
		if x := b.operand(e); x != nil {
			return IsTrue{x}
		}
	case operators.Equals, operators.NotEquals:
		if x, y := b.pair(args[0], args[1]); x != nil {
			return &Equality{x, y, name == operators.NotEquals}
		}
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if x, y := b.pair(args[0], args[1]); x != nil {
			return newOrdering(x, y, relations[name])
		}
	case operators.In:
		return b.membership(args[0], args[1])
	case "matches":
		return b.regex(call)
	case geoWithin:
		return b.geoWithin(args)
	case "@crosses", "@crosses_above", "@crosses_below":
		return b.crossing(e)
	default:
		if is := textTests[name]; is != nil && call.IsMemberFunction() && len(args) == 1 {
			if x, y := b.pair(call.Target(), args[0]); x != nil {
				return &TextPredicate{x, y, is}
			}
		}
		if is := foldedTests[name]; is != nil && len(args) == 2 {
			if x, y := b.pair(args[0], args[1]); x != nil {
				return &FoldedTextPredicate{x, y, is}
			}
		}
	}
	return nil
}

var relations = map[string]comparison{
	operators.Less: less, operators.LessEquals: lessOrEqual,
	operators.Greater: greater, operators.GreaterEquals: greaterOrEqual,
}

// buildAll builds the operands of a chain of the same operator, in their order.
func (b *builder) buildAll(e celast.Expr, operator string, tests []Predicate) []Predicate {
	for _, one := range flatten(e, operator, nil) {
		tests = append(tests, b.build(one))
	}
	return tests
}

// flatten flattens a op b op c.
func flatten(e celast.Expr, operator string, list []celast.Expr) []celast.Expr {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operator {
		for _, arg := range e.AsCall().Args() {
			list = flatten(arg, operator, list)
		}
		return list
	}
	return append(list, e)
}

// newOrdering takes the quicker form where an event's number meets a param.
func newOrdering(x, y operand, op comparison) Predicate {
	if f, ok := x.(field); ok {
		if p, ok := y.(numberParam); ok {
			return &NumberParamOrdering{f, p.column, op}
		}
	}
	if p, ok := x.(numberParam); ok {
		if f, ok := y.(field); ok {
			return &NumberParamOrdering{f, p.column, op.mirrored()}
		}
	}
	return &Ordering{x, y, op}
}

// pair returns two operands, or none.
func (b *builder) pair(e1, e2 celast.Expr) (x, y operand) {
	if x, y = b.operand(e1), b.operand(e2); x == nil || y == nil {
		return nil, nil
	}
	return x, y
}

// operand returns e as a constant, a field of the event or a param, or nil.
func (b *builder) operand(e celast.Expr) operand {
	if p, ok := b.param(e); ok {
		switch p.kind {
		case kindDouble:
			return numberParam{p.column}
		case kindString:
			return textParam{p.column}
		case kindList:
			return listParam{p.column}
		}
		return boolParam{p.column}
	}
	if c, ok := b.constant(e); ok {
		return c
	}
	if s, ok := b.source(e); ok {
		return field{b.path(s)}
	}
	if c, ok := b.timePartOperand(e); ok {
		return c
	}
	return nil
}

// param reports whether e is sub.name or sub["name"], or a literal that was
// taken out of a filter.
func (b *builder) param(e celast.Expr) (param, bool) {
	if p, ok := b.taken[e.ID()]; ok {
		return p, true
	}
	object, name, ok := selection(e)
	if !ok || !b.inRule || object.Kind() != celast.IdentKind || bareIdent(object) != "sub" {
		return param{}, false
	}
	return b.scope.param(name)
}

// steps reports whether e is a field of the event, at any depth, or an attribute of
// it, and which.
func (b *builder) steps(e celast.Expr) (source, bool) {
	if e.Kind() == celast.IdentKind {
		switch name := bareIdent(e); {
		case name == "event":
			return source{}, true
		case name == attributesName:
			return source{root: attributesRoot{}}, true
		case name == previousName:
			return source{root: previousRoot{}}, true
		case b.noEvent && b.event.fields[name] != nil:
			return source{steps: []string{name}}, true
		}
		return source{}, false
	}
	object, name, ok := selection(e)
	if !ok {
		return source{}, false
	}
	s, ok := b.steps(object)
	s.steps = append(s.steps, name)
	return s, ok
}

func bareIdent(e celast.Expr) string { return strings.TrimPrefix(e.AsIdent(), ".") }

// selection takes object.name and object["name"] apart.
func selection(e celast.Expr) (object celast.Expr, name string, ok bool) {
	switch e.Kind() {
	case celast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), !s.IsTestOnly()
	case celast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			key, isConst := literal(call.Args()[1])
			name, isText := key.(string)
			return call.Args()[0], name, isConst && isText
		}
	}
	return nil, "", false
}

// path makes a path to s, to be linked with the others.
func (b *builder) path(s source) *path {
	switch r := s.root.(type) {
	case *computedRoot:
		if r.program == nil {
			r.program = b.plan(r.expr)
		}
	case *timePartRoot:
		r.at = b.path(r.of)
	}
	p := &path{source: s}
	b.paths = append(b.paths, p)
	return p
}

// program hands e to cel-go.
func (b *builder) program(e celast.Expr) Predicate {
	if p := b.plan(e); p != nil {
		return CELPredicate{p, nanosOfProgram(e)}
	}
	return ConstantPredicate(false)
}

// plan plans e for cel-go; nil where that is an error, which b keeps.
func (b *builder) plan(e celast.Expr) cel.Program {
	part := celast.NewCheckedAST(celast.NewAST(e, b.ast.SourceInfo()), b.ast.TypeMap(), b.ast.ReferenceMap())
	p, err := b.env.PlanProgram(part, programOptions()...)
	if err != nil {
		b.err = err
		return nil
	}
	return p
}

// literal returns the Go value of a literal that the tests know.
func literal(e celast.Expr) (any, bool) {
	if e.Kind() != celast.LiteralKind {
		return nil, false
	}
	switch v := e.AsLiteral().(type) {
	case types.Null:
		return nil, true
	case types.Bool:
		return bool(v), true
	case types.Int:
		return int64(v), true
	case types.Uint:
		return int64(v), v <= math.MaxInt64
	case types.Double:
		return float64(v), true
	case types.String:
		return string(v), true
	}
	return nil, false
}
