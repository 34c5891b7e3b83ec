package expr

import (
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// A Builder turns checked expressions into predicates. It uses cel-go for expressions that no
// predicate covers: a whole condition or any operand of &&, ||, ! and ?:.
type Builder struct {
	*lang.Scope
	Ast   lang.Expression
	Taken map[int64]lang.Param // literals that are params, by the id of their expression
	Paths []*Path              // of the predicates built so far; the caller links them before it evaluates a predicate
	Err   error                // the first error of planning a CEL program
}

// Build returns the predicate of e, which must not be inside a macro.
func (b *Builder) Build(e celast.Expr) Predicate {
	switch e.Kind() {
	case celast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Bool); ok {
			return ConstantPredicate(v)
		}
	case celast.IdentKind:
		if x := b.Operand(e); x != nil {
			return IsTrue{x}
		}
	case celast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			if object, ok := b.Steps(s.Operand()); ok {
				t := HasField{Path: b.Path(object), name: s.FieldName()}
				if object.Root == nil && len(object.Steps) == 0 {
					t.member = b.Path(Source{Steps: []string{s.FieldName()}})
				}
				return t
			}
		} else if x := b.Operand(e); x != nil {
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

// call returns the predicate of a call, or nil if there is none.
func (b *Builder) call(e celast.Expr) Predicate {
	call := e.AsCall()
	args := call.Args()
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd:
		return And(b.buildAll(e, name, nil))
	case operators.LogicalOr:
		return Or(b.buildAll(e, name, nil))
	case operators.LogicalNot:
		return Not{b.Build(args[0])}
	case operators.Conditional:
		return Conditional{b.Build(args[0]), b.Build(args[1]), b.Build(args[2])}
	case operators.Index:
		if x := b.Operand(e); x != nil {
			return IsTrue{x}
		}
	case operators.Equals, operators.NotEquals:
		if x, y := b.pair(args[0], args[1]); x != nil {
			return &Equality{x, y, name == operators.NotEquals}
		}
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if x, y := b.pair(args[0], args[1]); x != nil {
			return newOrdering(x, y, Relations[name])
		}
	case operators.In:
		return b.membership(args[0], args[1])
	case "matches":
		return b.regex(call)
	case lang.GeoWithin:
		return b.geoWithin(args)
	case lang.JMESPath:
		return b.jmespath(call)
	case "@crosses", "@crosses_above", "@crosses_below":
		return b.crossing(e)
	default:
		if is := TextTests[name]; is != nil && call.IsMemberFunction() && len(args) == 1 {
			if x, y := b.pair(call.Target(), args[0]); x != nil {
				return &TextPredicate{x, y, is}
			}
		}
		if is := FoldedTests[name]; is != nil && len(args) == 2 {
			if x, y := b.pair(args[0], args[1]); x != nil {
				return &FoldedTextPredicate{x, y, is}
			}
		}
	}
	return nil
}

var Relations = map[string]Comparison{
	operators.Less: Less, operators.LessEquals: LessOrEqual,
	operators.Greater: Greater, operators.GreaterEquals: GreaterOrEqual,
}

// buildAll builds the operands of a chain of the same operator in their order.
func (b *Builder) buildAll(e celast.Expr, operator string, tests []Predicate) []Predicate {
	for _, one := range lang.Flatten(e, operator, nil) {
		tests = append(tests, b.Build(one))
	}
	return tests
}

// newOrdering uses the faster predicate if an event's number is compared with a param.
func newOrdering(x, y Operand, op Comparison) Predicate {
	if f, ok := x.(Field); ok {
		if p, ok := y.(NumberParam); ok {
			return &NumberParamOrdering{f, p.column, op}
		}
	}
	if p, ok := x.(NumberParam); ok {
		if f, ok := y.(Field); ok {
			return &NumberParamOrdering{f, p.column, op.Mirrored()}
		}
	}
	return &Ordering{x, y, op}
}

// pair returns two operands, or nil for both.
func (b *Builder) pair(e1, e2 celast.Expr) (x, y Operand) {
	if x, y = b.Operand(e1), b.Operand(e2); x == nil || y == nil {
		return nil, nil
	}
	return x, y
}

// Operand returns e as a constant, a field of the event or a param, or nil.
func (b *Builder) Operand(e celast.Expr) Operand {
	if p, ok := b.Param(e); ok {
		switch p.Kind {
		case lang.KindDouble:
			return NumberParam{p.Column}
		case lang.KindString:
			return TextParam{p.Column}
		case lang.KindList:
			return ListParam{p.Column}
		}
		return BoolParam{p.Column}
	}
	if c, ok := b.constant(e); ok {
		return c
	}
	if s, ok := b.Source(e); ok {
		return Field{b.Path(s)}
	}
	if c, ok := b.timePartOperand(e); ok {
		return c
	}
	return nil
}

// Param reports whether e is sub.name, sub["name"], or a literal that became a param.
func (b *Builder) Param(e celast.Expr) (lang.Param, bool) {
	if p, ok := b.Taken[e.ID()]; ok {
		return p, true
	}
	object, name, ok := lang.FieldSelection(e)
	if !ok || !b.InRule || object.Kind() != celast.IdentKind || lang.BareIdent(object) != "sub" {
		return lang.Param{}, false
	}
	return b.Scope.Param(name)
}

// Steps reports whether e is a field of the event at any depth, or an attribute of it, and returns
// where it is.
func (b *Builder) Steps(e celast.Expr) (Source, bool) {
	if e.Kind() == celast.IdentKind {
		switch name := lang.BareIdent(e); {
		case name == "event":
			return Source{}, true
		case name == lang.AttributesName:
			return Source{Root: attributesRoot{}}, true
		case name == lang.PreviousName:
			return Source{Root: previousRoot{}}, true
		case b.NoEvent && b.Event.Fields[name] != nil:
			return Source{Steps: []string{name}}, true
		}
		return Source{}, false
	}
	object, name, ok := lang.FieldSelection(e)
	if !ok {
		return Source{}, false
	}
	s, ok := b.Steps(object)
	s.Steps = append(s.Steps, name)
	return s, ok
}

// Path makes a path to s; the caller links it with the others.
func (b *Builder) Path(s Source) *Path {
	switch r := s.Root.(type) {
	case *computedRoot:
		if r.program == nil {
			r.program = b.plan(r.expr)
		}
	case *timePartRoot:
		r.at = b.Path(r.of)
	}
	p := &Path{Source: s}
	b.Paths = append(b.Paths, p)
	return p
}

// program returns e as a CEL program.
func (b *Builder) program(e celast.Expr) Predicate {
	if p := b.plan(e); p != nil {
		return CELPredicate{p, nanosOfProgram(e)}
	}
	return ConstantPredicate(false)
}

// plan plans e for cel-go; nil on an error, which b keeps.
func (b *Builder) plan(e celast.Expr) cel.Program {
	part := celast.NewCheckedAST(celast.NewAST(e, b.Ast.SourceInfo()), b.Ast.TypeMap(), b.Ast.ReferenceMap())
	p, err := b.Env.PlanProgram(part, lang.ProgramOptions()...)
	if err != nil {
		b.Err = err
		return nil
	}
	return p
}

// ParamsIn lists the known params that e reads, and reports whether it reads sub at all.
func ParamsIn(b *Builder, e celast.Expr) (reads []lang.Param, sub bool) {
	whole := false
	var visit func(celast.Expr)
	visit = func(e celast.Expr) {
		if p, ok := b.Param(e); ok {
			sub = true
			for _, known := range reads {
				if known == p {
					return
				}
			}
			reads = append(reads, p)
			return
		}
		if e.Kind() == celast.IdentKind && lang.BareIdent(e) == "sub" {
			sub, whole = true, true
		}
		for _, part := range lang.Children(e) {
			visit(part)
		}
	}
	visit(e)
	if whole {
		reads = nil
	}
	return reads, sub
}

// ReadsEvent reports whether e reads the event, or a variable that has the name of one of its
// fields.
func ReadsEvent(b *Builder, e celast.Expr) bool {
	if e.Kind() == celast.IdentKind {
		_, reads := b.Steps(e)
		return reads || b.Ast.Captured[e.ID()]
	}
	return slices.ContainsFunc(lang.Children(e), func(part celast.Expr) bool { return ReadsEvent(b, part) })
}

// regex is the predicate of text.matches(pattern) and matches(text, pattern) with a constant
// pattern.
func (b *Builder) regex(call celast.CallExpr) Predicate {
	args := lang.CallOperands(call)
	pattern, ok := lang.Literal(args[1])
	text, isText := pattern.(string)
	if !ok || !isText {
		return nil
	}
	size, err := lang.RegexSize(text)
	if err != nil {
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	x := b.Operand(args[0])
	if x == nil {
		return nil
	}
	return &RegexPredicate{x, compiled, size}
}
