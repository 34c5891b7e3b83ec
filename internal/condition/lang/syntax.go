package lang

import (
	"math"
	"slices"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// UsesVariable reports whether e contains the variable.
func UsesVariable(e celast.Expr, variable string) bool {
	return IsVariable(e, variable) || slices.ContainsFunc(Children(e), func(part celast.Expr) bool { return UsesVariable(part, variable) })
}

// Flatten appends the operands of a op b op c to list.
func Flatten(e celast.Expr, operator string, list []celast.Expr) []celast.Expr {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operator {
		for _, arg := range e.AsCall().Args() {
			list = Flatten(arg, operator, list)
		}
		return list
	}
	return append(list, e)
}

func BareIdent(e celast.Expr) string { return strings.TrimPrefix(e.AsIdent(), ".") }

// FieldSelection splits object.name and object["name"].
func FieldSelection(e celast.Expr) (object celast.Expr, name string, ok bool) {
	switch e.Kind() {
	case celast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), !s.IsTestOnly()
	case celast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			key, isConst := Literal(call.Args()[1])
			name, isText := key.(string)
			return call.Args()[0], name, isConst && isText
		}
	}
	return nil, "", false
}

// Literal returns the Go value of a literal that predicates support.
func Literal(e celast.Expr) (any, bool) {
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

// FieldPath writes a field of an object as CEL does.
func FieldPath(object string, steps []string) string {
	for _, step := range steps {
		object += "." + QuoteField(step)
	}
	return object
}

// QuoteField writes the name of a field as it appears after a dot.
func QuoteField(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return "`" + name + "`"
}

// StringLiterals returns the strings of a list that has only string literals.
func StringLiterals(e celast.Expr) (texts []string, ok bool) {
	values, ok := ListElements(e)
	if !ok {
		return nil, false
	}
	for _, one := range values {
		v, _ := Literal(one)
		text, isText := v.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// ListElements returns the elements of a list literal.
func ListElements(e celast.Expr) ([]celast.Expr, bool) {
	if e.Kind() != celast.ListKind || len(e.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	return e.AsList().Elements(), true
}

// Children lists the expressions directly inside of e.
func Children(e celast.Expr) []celast.Expr {
	switch e.Kind() {
	case celast.SelectKind:
		return []celast.Expr{e.AsSelect().Operand()}
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]celast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case celast.ListKind:
		return e.AsList().Elements()
	case celast.MapKind:
		var list []celast.Expr
		for _, entry := range e.AsMap().Entries() {
			list = append(list, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return list
	case celast.ComprehensionKind:
		f := e.AsComprehension()
		return []celast.Expr{f.IterRange(), f.AccuInit(), f.LoopCondition(), f.LoopStep(), f.Result()}
	case celast.StructKind:
		var list []celast.Expr
		for _, entry := range e.AsStruct().Fields() {
			list = append(list, entry.AsStructField().Value())
		}
		return list
	}
	return nil
}

// FieldSteps returns the names of the fields from a variable to e.
func FieldSteps(e celast.Expr, variable string) ([]string, bool) {
	if IsVariable(e, variable) {
		return []string{}, true
	}
	object, name, ok := FieldSelection(e)
	if !ok {
		return nil, false
	}
	steps, ok := FieldSteps(object, variable)
	return append(steps, name), ok
}

func IsVariable(e celast.Expr, name string) bool {
	return e.Kind() == celast.IdentKind && e.AsIdent() == name
}

// A Quantifier is over.exists(variable, inner), or over.all(variable, inner).
type Quantifier struct {
	Over     celast.Expr
	Variable string
	Inner    celast.Expr
	All      bool
}

// QuantifierOf recognises the expansion of the macros exists and all: a loop that joins its result
// so far with inner.
func QuantifierOf(e celast.Expr) (q Quantifier, ok bool) {
	if e.Kind() != celast.ComprehensionKind {
		return q, false
	}
	loop := e.AsComprehension()
	step := loop.LoopStep()
	if loop.HasIterVar2() || step.Kind() != celast.CallKind || len(step.AsCall().Args()) != 2 || !IsVariable(loop.Result(), loop.AccuVar()) {
		return q, false
	}
	begin, _ := Literal(loop.AccuInit())
	switch name := step.AsCall().FunctionName(); {
	case name == operators.LogicalOr && begin == false:
	case name == operators.LogicalAnd && begin == true:
		q.All = true
	default:
		return q, false
	}
	q.Over, q.Variable, q.Inner = loop.IterRange(), loop.IterVar(), step.AsCall().Args()[1]
	return q, IsVariable(step.AsCall().Args()[0], loop.AccuVar())
}

// CallOperands returns the arguments of a call, after its receiver if it has one.
func CallOperands(call celast.CallExpr) []celast.Expr {
	if call.IsMemberFunction() {
		return append([]celast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}
