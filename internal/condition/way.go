package condition

import (
	"math"
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A way leads to the rows that meet some conjuncts, each of which is answered
// where it is cheapest:
//
//	gates       name no param: once per event
//	statics     name no field: once per row, which is on the way or not
//	equalities  event.f == sub.p: the key of a bucket
//	needle      contains_ci(event.f, sub.p) and its like, where there is no equality:
//	            a bucket for each text, found by its grams
//	probe       a text or the texts of a list, of the event and of the row, have one
//	            in common: a bucket for each
//	cells       event.f between sub.p and sub.q, or near a place of the row: buckets for
//	            each bucket that the equalities lead to
//	span        event.f >= sub.p, or one of the other three: the order in the bucket;
//	            crosses(event.f, sub.p): a run of it, however far the value is above
type way struct {
	gates      allOf
	statics    allOf
	equalities []equalityKey
	needle     *needleKey // at most one
	probe      *probeKey  // at most one, without equality and needle
	cells      *cells     // at most one, without needle and probe
	span       *spanKey   // at most one
	entire     bool       // rows to which it leads are hits: what they stand for is filed in their stead
	buckets    map[uint64]handle
}

type equalityKey struct {
	field
	param param
}

type spanKey struct {
	field
	column  int
	op      relation
	crossed *levelKey // instead of field and op
}

// A needleKey is a conjunct that can only be true where the event's text contains
// the param, or one of its list, both folded; an exact one is true there.
type needleKey struct {
	field
	param param
	exact bool
	texts needles // those of the rows
}

func newWay() *way { return &way{buckets: map[uint64]handle{}} }

// isEntire reports whether w answers all of a condition of which nothing is left, in
// a bucket for each key.
func (w *way) isEntire() bool {
	return len(w.statics) == 0 && w.needle == nil && w.probe == nil && w.cells == nil && len(w.equalities) < 2 &&
		(len(w.equalities) == 1 || w.span != nil) && (w.span == nil || w.span.crossed == nil)
}

// filed is what stands in the buckets of w for a row.
func (w *way) filed(rows *rows, row uint32) uint32 {
	if w.entire {
		return uint32(rows.page(row).places[row&pageMask])
	}
	return row
}

// leads reports whether w goes straight to few rows.
func (w *way) leads() bool {
	return len(w.equalities) > 0 || w.needle != nil || w.probe != nil || w.cells != nil || w.span != nil && w.span.crossed != nil
}

// narrows reports whether w goes to other than all rows.
func (w *way) narrows() bool {
	return w.leads() || w.span != nil || w.gates != nil || w.statics != nil
}

// take takes the conjuncts that w answers, and returns the others. Gates are
// among both, and so is what leads to cells.
func (w *way) take(b *builder, conjuncts []celast.Expr) (rest []celast.Expr) {
	inCells := w.takeCells(b, conjuncts)
	for _, take := range [...]func(*builder, celast.Expr) bool{w.takeEquality, w.takeCrossing} {
		conjuncts = slices.DeleteFunc(slices.Clone(conjuncts), func(e celast.Expr) bool { return take(b, e) })
	}
	for _, conjunct := range conjuncts {
		if inCells[conjunct.ID()] || !w.takeSpan(b, conjunct) {
			rest = append(rest, conjunct)
		}
	}
	for _, conjunct := range rest { // a side of the range itself, if there is nothing better
		_ = inCells[conjunct.ID()] && w.takeSpan(b, conjunct)
	}
	conjuncts, rest = rest, nil
	for _, conjunct := range conjuncts {
		_, sub := readsOf(b, conjunct)
		switch {
		case w.takeNeedle(b, conjunct) && w.needle.exact:
			continue
		case !sub:
			w.gates = append(w.gates, b.build(conjunct))
		case !readsEvent(b, conjunct):
			w.statics = append(w.statics, b.build(conjunct))
			continue
		}
		rest = append(rest, conjunct)
	}
	return rest
}

// takeCells takes the surroundings of a place, or else ranges. It returns the
// conjuncts, by expression.
func (w *way) takeCells(b *builder, conjuncts []celast.Expr) map[int64]bool {
	for _, conjunct := range conjuncts {
		if near, ok := circlesOf(b, conjunct); ok {
			w.cells = &cells{extents: near}
			return nil
		}
	}
	found, used := rangesOf(b, conjuncts)
	if found != nil {
		w.cells = &cells{extents: found}
	}
	return used
}

// fieldAndParam takes a call of two operands apart into the event's field and
// the param that it compares; swapped tells that the param stands first.
func fieldAndParam(b *builder, e celast.Expr) (value source, p param, swapped, ok bool) {
	args := e.AsCall().Args()
	if p, ok = b.param(args[1]); ok {
		value, ok = b.source(args[0])
		return value, p, false, ok
	}
	if p, ok = b.param(args[0]); ok {
		value, ok = b.source(args[1])
	}
	return value, p, true, ok
}

func (w *way) takeEquality(b *builder, e celast.Expr) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return false
	}
	value, param, _, ok := fieldAndParam(b, e)
	if ok = ok && param.kind != kindList; ok {
		w.equalities = append(w.equalities, equalityKey{field{b.path(value)}, param})
	}
	return ok
}

func (w *way) takeSpan(b *builder, e celast.Expr) bool {
	if w.span != nil {
		return false
	}
	one, ok := boundOf(b, e)
	if ok {
		w.span = &spanKey{field: field{b.path(one.source)}, column: one.column, op: one.op}
	}
	return ok
}

func (w *way) takeNeedle(b *builder, e celast.Expr) bool {
	if len(w.equalities) > 0 || w.needle != nil || w.cells != nil || e.Kind() != celast.CallKind {
		return false
	}
	call := e.AsCall()
	args, name := call.Args(), call.FunctionName()
	if call.IsMemberFunction() && textTests[name] != nil {
		args = append([]celast.Expr{call.Target()}, args...)
	} else if foldedTests[name] == nil {
		return false
	}
	if len(args) != 2 {
		return false
	}
	text, ok1 := b.source(args[0])
	param, ok2 := b.param(args[1])
	if !ok1 || !ok2 || param.kind != kindString {
		return false
	}
	w.needle = &needleKey{field: field{b.path(text)}, param: param, exact: name == "contains_ci"}
	return true
}

// mix folds one more part of a key into h.
func mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// part is a row's part of the key: for one equality the key is exact, for
// several it is a hash, and the rows are checked.
func (k *equalityKey) part(p *page, row int) uint64 {
	if k.param.isNumber() {
		return math.Float64bits(p.numbers[k.param.column][row])
	}
	return uint64(p.texts[k.param.column][row])
}

// partOf is the event's part of the key; false where no row can be equal.
func (k *equalityKey) partOf(f *frame) (uint64, bool) {
	v, ok := k.load(f)
	if !ok {
		return 0, false
	}
	var text string
	switch k.param.kind {
	case kindDouble:
		number, ok := toFloat(v)
		return math.Float64bits(number + 0), ok // -0 becomes 0
	case kindString:
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
	n := f.texts.number(text)
	return uint64(n), n != 0
}
