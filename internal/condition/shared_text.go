package condition

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A sharedTextKey is a conjunct that can only be true if the event and the row have a text in
// common: event.f in sub.list, sub.p in event.list, and the same with exists or all.
type sharedTextKey struct {
	expr.Field
	inList bool     // the event's texts are in a list, or are the keys of an object
	steps  []string // from an element of that list to the text
	param  lang.Param
	all    bool // the event must have all texts of the row; the row is in the bucket of the first
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

// takeSharedText takes a conjunct as the shared text of a, or as a substring from a list.
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

// A sharedTextReader recognises one conjunct.
type sharedTextReader struct {
	*expr.Builder
	key     sharedTextKey
	row     string      // the variable for the row's list, or ""
	element string      // the variable for a list of the event, or ""
	list    expr.Source // that list
}

// containsElement recognises contains_ci(event.f, x) with x from the row's list.
func (r *sharedTextReader) containsElement(e celast.Expr) (text expr.Source, ok bool) {
	if r.row == "" || e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "contains_ci" {
		return expr.Source{}, false
	}
	args := e.AsCall().Args()
	text, ok = r.Steps(args[0])
	return text, ok && lang.IsVariable(args[1], r.row)
}

// sharedText recognises a comparison of a text of the row with texts of the event, and returns
// where these are.
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

// ofEvent returns where the event's text e is, or the list that contains it.
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
