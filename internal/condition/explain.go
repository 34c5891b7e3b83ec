package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/parser"

	"fanfare.dev/fanfare"
)

// Explain says part by part what the condition of an entry comes to for an
// event, under the topic's definition of this moment. The whole is true
// exactly where Match finds such an entry. An entry without a condition has no
// parts: it is met by every event. The places of the entry are not looked at.
//
// It compiles the condition anew, several times over: it is for people, not for
// the way of an event.
func (x *Index) Explain(key Key, entry Entry, event Event) (fanfare.Part, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Part{}, err
	}
	c := t.compiled.Load()
	data, err := decodeData(event.Data, c.filterScope.event)
	if err != nil {
		return fanfare.Part{}, err
	}
	sc, where, text, v := c.filterScope, "/filter", entry.Filter, paramValues{}
	switch {
	case entry.Rule != "":
		number, read, err := c.readParams(entry.Rule, entry.Params)
		if err != nil {
			return fanfare.Part{}, err
		}
		sc, text, v = c.ruleScopes[number], c.definition.Rules[number].When, read
		where = pointer("rules", fmt.Sprint(number), "when")
	case text == "":
		return fanfare.Part{Text: "true", Kind: fanfare.PartTest, Result: fanfare.PartTrue}, nil
	}
	return explain(sc, where, text, v, &event, data)
}

// explain evaluates a condition and everything in it.
func explain(sc *scope, where, text string, v paramValues, event *Event, data any) (fanfare.Part, error) {
	// With its macros kept, the expression can be written out again.
	env, err := sc.env.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return fanfare.Part{}, fmt.Errorf("keep macros: %w", err)
	}
	own := *sc
	own.env = env
	a, err := own.compile(where, text)
	if err != nil {
		return fanfare.Part{}, err
	}
	for id, call := range a.SourceInfo().MacroCalls() {
		a.SourceInfo().SetMacroCall(id, a.asWritten(call))
	}
	x := &explainer{standalone{scope: &own, ast: a}}
	x.setEvent(event, data)
	x.frame.page = detachedPage(own.params, v, x.frame.texts)
	part := x.condition(a.Expr())
	if x.err != nil {
		return fanfare.Part{}, invalid(where, "%v", x.err)
	}
	return part, nil
}

// An explainer evaluates the parts of one condition for one event. Each is built
// as Match builds it.
type explainer struct{ standalone }

var partKinds = map[string]fanfare.PartKind{
	operators.LogicalAnd: fanfare.PartAll, operators.LogicalOr: fanfare.PartAny,
	operators.LogicalNot: fanfare.PartNot, operators.Conditional: fanfare.PartChoice,
}

// condition explains e, which is true or false.
func (x *explainer) condition(e celast.Expr) fanfare.Part {
	part := fanfare.Part{Text: x.text(e), Kind: fanfare.PartTest}
	var t Predicate
	x.build(func(b *builder) { t = b.build(e) })
	result := t.eval(&x.frame)
	part.Result = [...]string{False: fanfare.PartFalse, True: fanfare.PartTrue, Error: fanfare.PartError}[result]

	if e.Kind() == celast.CallKind {
		name := e.AsCall().FunctionName()
		if kind, joins := partKinds[name]; joins {
			part.Kind = kind
			inner := e.AsCall().Args()
			if kind == fanfare.PartAll || kind == fanfare.PartAny {
				inner = flatten(e, name, nil)
			}
			for _, one := range inner {
				part.Parts = append(part.Parts, x.condition(one))
			}
			return part
		}
	}
	part.Parts = x.innerValues(e)
	if result == Error {
		part.Error = x.describeError(e, part.Parts)
	}
	return part
}

// innerValues explains the values directly inside e.
func (x *explainer) innerValues(e celast.Expr) []fanfare.Part {
	var list []fanfare.Part
	for _, one := range x.operands(e) {
		if part, ok := x.value(one); ok {
			list = append(list, part)
		}
	}
	if c, ok := crossingOf(e); ok {
		list = append(list, x.previousValue(c))
	}
	return list
}

// operands are the parts of e that have a value of their own: of a macro only
// what it runs over, of a crossing not what the value was, of a field of the event the field.
func (x *explainer) operands(e celast.Expr) []celast.Expr {
	if e.Kind() == celast.ComprehensionKind {
		return []celast.Expr{e.AsComprehension().IterRange()}
	}
	if x.isReference(e) {
		return nil
	}
	if c, ok := crossingOf(e); ok {
		return []celast.Expr{c.now, c.level}
	}
	return children(e)
}

// isReference reports whether e is the event, a field of it or a param.
func (x *explainer) isReference(e celast.Expr) bool {
	b := builder{scope: x.scope, ast: x.ast}
	if _, ok := b.param(e); ok {
		return true
	}
	_, ok := b.steps(e)
	return ok
}

// value explains e, which may be anything; false for a constant.
func (x *explainer) value(e celast.Expr) (fanfare.Part, bool) {
	if isConstant(e) || e.Kind() == celast.IdentKind && !x.isReference(e) && bareIdent(e) != "sub" {
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

// load reads a name as a test would.
func (x *explainer) load(e celast.Expr) (v any, ok bool) {
	var o operand
	x.build(func(b *builder) { o = b.operand(e) })
	return o.load(&x.frame)
}

// isConstant reports whether e is a literal, or made of literals alone.
func isConstant(e celast.Expr) bool {
	switch e.Kind() {
	case celast.LiteralKind:
		return true
	case celast.ListKind, celast.MapKind:
		for _, one := range children(e) {
			if !isConstant(one) {
				return false
			}
		}
		return true
	}
	return false
}

// text writes e out on one line.
func (x *explainer) text(e celast.Expr) string {
	text, err := parser.Unparse(x.ast.asWritten(e), x.ast.SourceInfo(), parser.WrapOnColumn(MaxTextBytes*8), parser.EscapeIdentifiers(true))
	if err != nil {
		return "(a part that cannot be written out)"
	}
	return strings.ReplaceAll(text, "\n", " ")
}
