package condition

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A probeKey is a conjunct that can only be true where the event and the row have
// a text in common: event.f in sub.list, sub.p in event.list and what quantifiers
// make of them.
type sharedTextKey struct {
	expr.Field
	inList bool     // the event's texts are in a list, or the keys of an object
	steps  []string // and in each element of the list there
	param  lang.Param
	all    bool // all texts of the row must be there; the first one leads to it
}

// eachText visits the event's texts.
func (k *sharedTextKey) eachText(f *expr.Frame, visit func(text string)) {
	v, _ := k.Load(f)
	if !k.inList {
		if text, ok := v.(string); ok {
			visit(text)
		}
		return
	}
	switch v := v.(type) {
	case []any:
		inner := expr.Path{Source: expr.Source{Steps: k.steps}}
		for _, element := range v {
			found, _ := inner.Follow(element)
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
func (a *accessPath) takeSharedText(b *expr.Builder, e celast.Expr) bool {
	r := sharedTextReader{Builder: b}
	if q, ok := lang.QuantifierOf(e); ok && !b.HidesName(q.Variable) {
		if list, isParam := b.Param(q.Over); isParam && list.Kind == lang.KindList {
			r.key.param, r.key.all, r.row, e = list, q.All, q.Variable, q.Inner
		}
	}
	if text, ok := r.containsElement(e); ok && !r.key.all {
		a.substring = &substringKey{Field: expr.Field{Path: b.Path(text)}, param: r.key.param, exact: true}
		return true
	}
	if q, ok := lang.QuantifierOf(e); ok && !q.All && q.Variable != r.row && !b.HidesName(q.Variable) {
		if r.list, ok = b.Steps(q.Over); !ok {
			return false
		}
		r.element, e, r.key.inList = q.Variable, q.Inner, true
	}
	where, ok := r.sharedText(e)
	if ok {
		r.key.Field = expr.Field{Path: b.Path(where)}
		a.sharedText = &r.key
	}
	return ok
}

// A probeReader understands one conjunct.
type sharedTextReader struct {
	*expr.Builder
	key     sharedTextKey
	row     string      // the variable that runs over the row's list, if one does
	element string      // the variable that runs over a list of the event, if one does:
	list    expr.Source // this one
}

// containsElement reads contains_ci(event.f, x), x out of the row's list.
func (r *sharedTextReader) containsElement(e celast.Expr) (text expr.Source, ok bool) {
	if r.row == "" || e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "contains_ci" {
		return expr.Source{}, false
	}
	args := e.AsCall().Args()
	text, ok = r.Steps(args[0])
	return text, ok && lang.IsVariable(args[1], r.row)
}

// sharedText reads what says that a text of the row is one of the event's, and
// returns where that is.
func (r *sharedTextReader) sharedText(e celast.Expr) (where expr.Source, ok bool) {
	if e.Kind() != celast.CallKind {
		return expr.Source{}, false
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
		if list, isParam := r.Param(args[1]); isParam && r.row == "" && list.Kind == lang.KindList {
			r.key.param = list
			return r.ofEvent(args[0])
		}
		if r.ofRow(args[0]) && r.element == "" {
			r.key.inList = true
			return r.Steps(args[1])
		}
	}
	return expr.Source{}, false
}

// ofRow reports whether e is a text of the row.
func (r *sharedTextReader) ofRow(e celast.Expr) bool {
	if r.row != "" {
		return lang.IsVariable(e, r.row)
	}
	p, ok := r.Param(e)
	if ok = ok && p.Kind == lang.KindString; ok {
		r.key.param = p
	}
	return ok
}

// ofEvent returns where the text e of the event is, or the list that has it.
func (r *sharedTextReader) ofEvent(e celast.Expr) (where expr.Source, ok bool) {
	switch {
	case r.element == "" && r.row == "":
		return r.Source(e)
	case r.element == "":
		return r.Steps(e)
	}
	r.key.steps, ok = lang.FieldSteps(e, r.element)
	return r.list, ok
}
