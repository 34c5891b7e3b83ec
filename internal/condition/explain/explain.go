package explain

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// Explain evaluates a condition and each of its parts.
func Explain(sc *lang.Scope, where, text string, v lang.ParamValues, event *expr.Event, data any) (fanfare.Part, error) {
	// The parser keeps the macros, so that the expression can be written out again.
	env, err := sc.Env.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return fanfare.Part{}, fmt.Errorf("track macro calls: %w", err)
	}
	own := *sc
	own.Env = env
	a, err := own.Compile(where, text)
	if err != nil {
		return fanfare.Part{}, err
	}
	for id, call := range a.SourceInfo().MacroCalls() {
		a.SourceInfo().SetMacroCall(id, a.AsWritten(call))
	}
	x := &explainer{expr.StandaloneCondition{Scope: &own, Ast: a}}
	x.SetEvent(event, data)
	x.Frame.Page = expr.DetachedPage(own.Params, v, x.Frame.Texts)
	part := x.condition(a.Expr())
	if x.Err != nil {
		return fanfare.Part{}, lang.Invalid(where, "%v", x.Err)
	}
	return part, nil
}

// An explainer evaluates the parts of one condition for one event. It builds each part as a match
// does.
type explainer struct{ expr.StandaloneCondition }

var partKinds = map[string]fanfare.PartKind{
	operators.LogicalAnd: fanfare.PartAll, operators.LogicalOr: fanfare.PartAny,
	operators.LogicalNot: fanfare.PartNot, operators.Conditional: fanfare.PartChoice,
}

// condition explains e, which is a condition.
func (x *explainer) condition(e celast.Expr) fanfare.Part {
	part := fanfare.Part{Text: x.text(e), Kind: fanfare.PartTest}
	var t expr.Predicate
	x.Build(func(b *expr.Builder) { t = b.Build(e) })
	result := t.Eval(&x.Frame)
	part.Result = [...]string{expr.False: fanfare.PartFalse, expr.True: fanfare.PartTrue, expr.Error: fanfare.PartError}[result]

	if e.Kind() == celast.CallKind {
		name := e.AsCall().FunctionName()
		if kind, joins := partKinds[name]; joins {
			part.Kind = kind
			inner := e.AsCall().Args()
			if kind == fanfare.PartAll || kind == fanfare.PartAny {
				inner = lang.Flatten(e, name, nil)
			}
			for _, one := range inner {
				part.Parts = append(part.Parts, x.condition(one))
			}
			return part
		}
	}
	part.Parts = x.innerValues(e)
	if result == expr.Error {
		part.Error = x.describeError(e, part.Parts)
	}
	return part
}

// innerValues explains the values directly inside of e.
func (x *explainer) innerValues(e celast.Expr) []fanfare.Part {
	var list []fanfare.Part
	for _, one := range x.operands(e) {
		if part, ok := x.value(one); ok {
			list = append(list, part)
		}
	}
	if c, ok := lang.CrossingOf(e); ok {
		list = append(list, x.previousValue(c))
	}
	return list
}

// operands returns the parts of e that have a value of their own: of a macro only the list, of a
// crossing not the previous value.
func (x *explainer) operands(e celast.Expr) []celast.Expr {
	if e.Kind() == celast.ComprehensionKind {
		return []celast.Expr{e.AsComprehension().IterRange()}
	}
	if x.isReference(e) {
		return nil
	}
	if c, ok := lang.CrossingOf(e); ok {
		return []celast.Expr{c.Now, c.Level}
	}
	return lang.Children(e)
}

// isReference reports whether e is the event, a field of it or a param.
func (x *explainer) isReference(e celast.Expr) bool {
	b := expr.Builder{Scope: x.Scope, Ast: x.Ast}
	if _, ok := b.Param(e); ok {
		return true
	}
	_, ok := b.Steps(e)
	return ok
}

// value explains e, which may be of any type; false for a constant.
func (x *explainer) value(e celast.Expr) (fanfare.Part, bool) {
	if isConstant(e) || e.Kind() == celast.IdentKind && !x.isReference(e) && lang.BareIdent(e) != "sub" {
		return fanfare.Part{}, false
	}
	part := fanfare.Part{Text: x.text(e), Kind: fanfare.PartValue, Result: fanfare.PartFound}
	if x.isReference(e) {
		v, ok := x.load(e)
		if part.Value = show(v); !ok {
			part.Value, part.Result, part.Error = nil, fanfare.PartError, x.describeMissing(e)
		}
		return part, true
	}
	part.Parts = x.innerValues(e)
	v, err := x.evaluate(e)
	if part.Value = showCEL(v); err != nil {
		part.Value, part.Result, part.Error = nil, fanfare.PartError, x.describeCELError(err, part.Parts)
	}
	return part, true
}

// load reads a reference as a predicate does.
func (x *explainer) load(e celast.Expr) (v any, ok bool) {
	var o expr.Operand
	x.Build(func(b *expr.Builder) { o = b.Operand(e) })
	return o.Load(&x.Frame)
}

// isConstant reports whether e is a literal or consists of literals.
func isConstant(e celast.Expr) bool {
	switch e.Kind() {
	case celast.LiteralKind:
		return true
	case celast.ListKind, celast.MapKind:
		for _, one := range lang.Children(e) {
			if !isConstant(one) {
				return false
			}
		}
		return true
	}
	return false
}

// text writes e on one line.
func (x *explainer) text(e celast.Expr) string {
	text, err := parser.Unparse(x.Ast.AsWritten(e), x.Ast.SourceInfo(), parser.WrapOnColumn(lang.MaxTextBytes*8), parser.EscapeIdentifiers(true))
	if err != nil {
		return "(a part that cannot be written as text)"
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// previousValue explains the previous value of a crossing in one part, written like the current
// value.
func (x *explainer) previousValue(c lang.Crossing) fanfare.Part {
	part := fanfare.Part{Text: x.text(c.Now) + ", before", Kind: fanfare.PartValue, Result: fanfare.PartFound}
	v, err := x.evaluate(c.Previous)
	switch _, known := x.Frame.Previous.Decoded(); {
	case !known:
		part.Result, part.Error = fanfare.PartError, "there is no previous event with its key"
	case err != nil:
		part.Result, part.Error = fanfare.PartError, x.describeCELError(err, nil)
	default:
		part.Value = showCEL(v)
	}
	return part
}
