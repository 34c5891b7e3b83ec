package condition

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A probeKey is a conjunct that can only be true where the event and the row have
// a text in common: event.f in sub.list, sub.p in event.list and what quantifiers
// make of them.
type sharedTextKey struct {
	field
	inList bool     // the event's texts are in a list, or the keys of an object
	steps  []string // and in each element of the list there
	param  param
	all    bool // all texts of the row must be there; the first one leads to it
}

// eachText visits the event's texts.
func (k *sharedTextKey) eachText(f *frame, visit func(text string)) {
	v, _ := k.load(f)
	if !k.inList {
		if text, ok := v.(string); ok {
			visit(text)
		}
		return
	}
	switch v := v.(type) {
	case []any:
		inner := path{source: source{steps: k.steps}}
		for _, element := range v {
			found, _ := inner.follow(element)
			if text, ok := found.(string); ok {
				visit(text)
			}
		}
	case map[string]any:
		if len(k.steps) == 0 {
			for name := range v {
				visit(name)
			}
		}
	}
}

// takeSharedText takes a conjunct as the probe of w, or as a needle out of a list.
func (w *accessPath) takeSharedText(b *builder, e celast.Expr) bool {
	r := sharedTextReader{builder: b}
	if q, ok := quantifierOf(e); ok && !b.hides(q.variable) {
		if list, isParam := b.param(q.over); isParam && list.kind == kindList {
			r.key.param, r.key.all, r.row, e = list, q.all, q.variable, q.inner
		}
	}
	if text, ok := r.containsElement(e); ok && !r.key.all {
		w.substring = &substringKey{field: field{b.path(text)}, param: r.key.param, exact: true}
		return true
	}
	if q, ok := quantifierOf(e); ok && !q.all && q.variable != r.row && !b.hides(q.variable) {
		if r.list, ok = b.steps(q.over); !ok {
			return false
		}
		r.element, e, r.key.inList = q.variable, q.inner, true
	}
	where, ok := r.sharedText(e)
	if ok {
		r.key.field = field{b.path(where)}
		w.sharedText = &r.key
	}
	return ok
}

// hides reports whether a variable is named as something else is, which it then is
// not. A field that is written bare is none: where a variable has its name it stays bare.
func (b *builder) hides(variable string) bool {
	return slices.Contains([]string{"event", "sub", attributesName}, variable) || b.noEvent && b.event.fields[variable] != nil
}

// A probeReader understands one conjunct.
type sharedTextReader struct {
	*builder
	key     sharedTextKey
	row     string // the variable that runs over the row's list, if one does
	element string // the variable that runs over a list of the event, if one does:
	list    source // this one
}

// containsElement reads contains_ci(event.f, x), x out of the row's list.
func (r *sharedTextReader) containsElement(e celast.Expr) (text source, ok bool) {
	if r.row == "" || e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "contains_ci" {
		return source{}, false
	}
	args := e.AsCall().Args()
	text, ok = r.steps(args[0])
	return text, ok && isVariable(args[1], r.row)
}

// sharedText reads what says that a text of the row is one of the event's, and
// returns where that is.
func (r *sharedTextReader) sharedText(e celast.Expr) (where source, ok bool) {
	if e.Kind() != celast.CallKind {
		return source{}, false
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Equals:
		if r.ofRow(args[0]) {
			return r.ofEvent(args[1])
		}
		if r.ofRow(args[1]) {
			return r.ofEvent(args[0])
		}
	case operators.In:
		if list, isParam := r.param(args[1]); isParam && r.row == "" && list.kind == kindList {
			r.key.param = list
			return r.ofEvent(args[0])
		}
		if r.ofRow(args[0]) && r.element == "" {
			r.key.inList = true
			return r.steps(args[1])
		}
	}
	return source{}, false
}

// ofRow reports whether e is a text of the row.
func (r *sharedTextReader) ofRow(e celast.Expr) bool {
	if r.row != "" {
		return isVariable(e, r.row)
	}
	p, ok := r.param(e)
	if ok = ok && p.kind == kindString; ok {
		r.key.param = p
	}
	return ok
}

// ofEvent returns where the text e of the event is, or the list that has it.
func (r *sharedTextReader) ofEvent(e celast.Expr) (where source, ok bool) {
	switch {
	case r.element == "" && r.row == "":
		return r.source(e)
	case r.element == "":
		return r.steps(e)
	}
	r.key.steps, ok = stepsFrom(e, r.element)
	return r.list, ok
}

// stepsFrom returns the steps from a variable to e.
func stepsFrom(e celast.Expr, variable string) ([]string, bool) {
	if isVariable(e, variable) {
		return []string{}, true
	}
	object, name, ok := selection(e)
	if !ok {
		return nil, false
	}
	steps, ok := stepsFrom(object, variable)
	return append(steps, name), ok
}

func isVariable(e celast.Expr, name string) bool {
	return e.Kind() == celast.IdentKind && e.AsIdent() == name
}

// A quantifier is over.exists(variable, inner), or over.all(variable, inner).
type quantifier struct {
	over     celast.Expr
	variable string
	inner    celast.Expr
	all      bool
}

// quantifierOf recognises what CEL makes of the two macros: a loop that joins
// what it found so far with inner.
func quantifierOf(e celast.Expr) (q quantifier, ok bool) {
	if e.Kind() != celast.ComprehensionKind {
		return q, false
	}
	loop := e.AsComprehension()
	step := loop.LoopStep()
	if loop.HasIterVar2() || step.Kind() != celast.CallKind || len(step.AsCall().Args()) != 2 || !isVariable(loop.Result(), loop.AccuVar()) {
		return q, false
	}
	begin, _ := literal(loop.AccuInit())
	switch name := step.AsCall().FunctionName(); {
	case name == operators.LogicalOr && begin == false:
	case name == operators.LogicalAnd && begin == true:
		q.all = true
	default:
		return q, false
	}
	q.over, q.variable, q.inner = loop.IterRange(), loop.IterVar(), step.AsCall().Args()[1]
	return q, isVariable(step.AsCall().Args()[0], loop.AccuVar())
}
