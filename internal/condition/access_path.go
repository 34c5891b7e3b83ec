package condition

import (
	"math"
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
	"fanfare.dev/fanfare/internal/condition/ngram"
)

// accessPathsOfIn returns an access path for each value of a list that contains params, or nil.
func accessPathsOfIn(b *expr.Builder, e celast.Expr) []*accessPath {
	value, values, ok := b.InList(e)
	if _, sub := expr.ParamsIn(b, e); !ok || !sub || len(values) > maxAlternatives {
		return nil
	}
	if _, whole := b.Param(e.AsCall().Args()[1]); whole {
		return nil
	}
	paths := make([]*accessPath, len(values))
	for i, one := range values {
		paths[i] = newAccessPath()
		if p, isParam := b.Param(one); isParam {
			paths[i].equalities = []equalityKey{{expr.Field{Path: b.Path(value)}, p}}
		} else {
			paths[i].eventPredicates = expr.And{&expr.Equality{A: expr.Field{Path: b.Path(value)}, B: b.Operand(one)}}
		}
	}
	return paths
}

// A paramBound is event.f op sub.p.
type paramBound struct {
	expr.Source
	column int
	op     expr.Comparison
}

// paramBoundOf splits a comparison of a field with a param that is a number.
func paramBoundOf(b *expr.Builder, e celast.Expr) (found paramBound, ok bool) {
	if e.Kind() != celast.CallKind {
		return found, false
	}
	op, ok := expr.Relations[e.AsCall().FunctionName()]
	if !ok {
		return found, false
	}
	value, param, swapped, ok := fieldAndParam(b, e)
	if swapped {
		op = op.Mirrored()
	}
	return paramBound{value, param.Column, op}, ok && param.IsNumber()
}

// An accessPath leads to the rows that meet some conjuncts. Each conjunct is answered where that is
// cheapest:
//
//	eventPredicates  read no param: evaluated once per event
//	rowPredicates    read no field: once per row, which is on the path or not
//	equalities       event.f == sub.p: the key of a bucket
//	substring        contains_ci(event.f, sub.p) and similar, without an equality: a bucket
//	                 for each text, found by its n-grams
//	sharedText       event and row have a text in common, also one of a list: a bucket
//	                 for each text
//	grid             event.f between sub.p and sub.q, or near a place of the row: buckets
//	                 for each key of the equalities
//	rangeKey         event.f >= sub.p, or another order: the order in the bucket;
//	                 crosses(event.f, sub.p): a run of rows in this order
type accessPath struct {
	eventPredicates expr.And
	rowPredicates   expr.And
	equalities      []equalityKey
	substring       *substringKey  // or nil
	sharedText      *sharedTextKey // or nil; without equalities and substring
	grid            *grid          // or nil; without substring and sharedText
	rangeKey        *rangeKey      // or nil
	covering        bool           // all rows that it leads to are hits, and buckets contain their owners instead of rows
	buckets         map[uint64]bucketRef
}

type equalityKey struct {
	expr.Field
	param lang.Param
}

type rangeKey struct {
	expr.Field
	column   int
	op       expr.Comparison
	crossing *crossingKey // if set, field and op are unused
}

// A substringKey is a conjunct that can only be true if the event's text contains the param, or one
// of the texts in a list param, both folded. If it is exact, it is then always true.
type substringKey struct {
	expr.Field
	param  lang.Param
	exact  bool
	ngrams ngram.Index // of the texts of the rows
}

func newAccessPath() *accessPath { return &accessPath{buckets: map[uint64]bucketRef{}} }

// canCover reports whether a answers a complete condition, without residuals, with one bucket for
// each key.
func (a *accessPath) canCover() bool {
	return len(a.rowPredicates) == 0 && a.substring == nil && a.sharedText == nil && a.grid == nil && len(a.equalities) < 2 &&
		(len(a.equalities) == 1 || a.rangeKey != nil) && (a.rangeKey == nil || a.rangeKey.crossing == nil)
}

// entry returns the value that the buckets of a contain for a row.
func (a *accessPath) entry(rows *pageStore, row uint32) uint32 {
	if a.covering {
		return uint32(rows.page(row).owners[row&pageMask])
	}
	return row
}

// isSelective reports whether a leads directly to few rows.
func (a *accessPath) isSelective() bool {
	return len(a.equalities) > 0 || a.substring != nil || a.sharedText != nil || a.grid != nil || a.rangeKey != nil && a.rangeKey.crossing != nil
}

// restricts reports whether a leads to fewer than all rows.
func (a *accessPath) restricts() bool {
	return a.isSelective() || a.rangeKey != nil || a.eventPredicates != nil || a.rowPredicates != nil
}

// takeConjuncts takes the conjuncts that a answers, and returns the others. Event predicates and
// the conjuncts of a grid are among both.
func (a *accessPath) takeConjuncts(b *expr.Builder, conjuncts []celast.Expr) (rest []celast.Expr) {
	inCells := a.takeGrid(b, conjuncts)
	for _, take := range [...]func(*expr.Builder, celast.Expr) bool{a.takeEquality, a.takeCrossing} {
		conjuncts = slices.DeleteFunc(slices.Clone(conjuncts), func(e celast.Expr) bool { return take(b, e) })
	}
	for _, conjunct := range conjuncts {
		if inCells[conjunct.ID()] || !a.takeRange(b, conjunct) {
			rest = append(rest, conjunct)
		}
	}
	for _, conjunct := range rest { // one side of the range, if there is no other range key
		_ = inCells[conjunct.ID()] && a.takeRange(b, conjunct)
	}
	conjuncts, rest = rest, nil
	for _, conjunct := range conjuncts {
		_, sub := expr.ParamsIn(b, conjunct)
		switch {
		case a.takeSubstring(b, conjunct) && a.substring.exact:
			continue
		case !sub:
			a.eventPredicates = append(a.eventPredicates, b.Build(conjunct))
		case !expr.ReadsEvent(b, conjunct):
			a.rowPredicates = append(a.rowPredicates, b.Build(conjunct))
			continue
		}
		rest = append(rest, conjunct)
	}
	return rest
}

// takeGrid takes the area around a place, or else ranges. It returns their conjuncts by
// expression.
func (a *accessPath) takeGrid(b *expr.Builder, conjuncts []celast.Expr) map[int64]bool {
	for _, conjunct := range conjuncts {
		if near, ok := circleSpaceOf(b, conjunct); ok {
			a.grid = &grid{gridSpace: near}
			return nil
		}
	}
	found, used := rangeSpaceOf(b, conjuncts)
	if found != nil {
		a.grid = &grid{gridSpace: found}
	}
	return used
}

// fieldAndParam splits a call with two operands into the event's field and the param that it
// compares; swapped reports that the param is the first operand.
func fieldAndParam(b *expr.Builder, e celast.Expr) (value expr.Source, p lang.Param, swapped, ok bool) {
	args := e.AsCall().Args()
	if p, ok = b.Param(args[1]); ok {
		value, ok = b.Source(args[0])
		return value, p, false, ok
	}
	if p, ok = b.Param(args[0]); ok {
		value, ok = b.Source(args[1])
	}
	return value, p, true, ok
}

func (a *accessPath) takeEquality(b *expr.Builder, e celast.Expr) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return false
	}
	value, param, _, ok := fieldAndParam(b, e)
	if ok = ok && param.Kind != lang.KindList; ok {
		a.equalities = append(a.equalities, equalityKey{expr.Field{Path: b.Path(value)}, param})
	}
	return ok
}

func (a *accessPath) takeRange(b *expr.Builder, e celast.Expr) bool {
	if a.rangeKey != nil {
		return false
	}
	one, ok := paramBoundOf(b, e)
	if ok {
		a.rangeKey = &rangeKey{Field: expr.Field{Path: b.Path(one.Source)}, column: one.column, op: one.op}
	}
	return ok
}

func (a *accessPath) takeSubstring(b *expr.Builder, e celast.Expr) bool {
	if len(a.equalities) > 0 || a.substring != nil || a.grid != nil || e.Kind() != celast.CallKind {
		return false
	}
	call := e.AsCall()
	args, name := call.Args(), call.FunctionName()
	if call.IsMemberFunction() && expr.TextTests[name] != nil {
		args = append([]celast.Expr{call.Target()}, args...)
	} else if expr.FoldedTests[name] == nil {
		return false
	}
	if len(args) != 2 {
		return false
	}
	text, ok1 := b.Source(args[0])
	param, ok2 := b.Param(args[1])
	if !ok1 || !ok2 || param.Kind != lang.KindString {
		return false
	}
	a.substring = &substringKey{Field: expr.Field{Path: b.Path(text)}, param: param, exact: name == "contains_ci"}
	return true
}

// hashMix adds one part of a key to hash h.
func hashMix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// rowPart returns a row's part of the key. With one equality the key is exact, with several it is a
// hash, and the search compares the parts.
func (k *equalityKey) rowPart(p *expr.ParamPage, row int) uint64 {
	if k.param.IsNumber() {
		return math.Float64bits(p.Numbers[k.param.Column][row])
	}
	return uint64(p.Texts[k.param.Column][row])
}

// eventPart returns the event's part of the key; false if no row can be equal.
func (k *equalityKey) eventPart(f *expr.Frame) (uint64, bool) {
	v, ok := k.Load(f)
	if !ok {
		return 0, false
	}
	var text string
	switch k.param.Kind {
	case lang.KindDouble:
		number, ok := expr.ToFloat(v)
		return math.Float64bits(number + 0), ok // -0 becomes 0
	case lang.KindString:
		if text, ok = v.(string); !ok {
			return 0, false
		}
	default:
		truth, ok := v.(bool)
		if !ok {
			return 0, false
		}
		text = "false"
		if truth {
			text = "true"
		}
	}
	n := f.Texts.Number(text)
	return uint64(n), n != 0
}
