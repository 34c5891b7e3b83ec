package condition

import (
	"sort"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A crossingKey is a conjunct that is true if the row's level is between the previous value and the
// current one: a range of the bucket with two ends.
type crossingKey struct {
	lang.Direction
	now, previous expr.Operand
}

// takeCrossing takes a crossing of a level that is a number of the row.
func (a *accessPath) takeCrossing(b *expr.Builder, e celast.Expr) bool {
	c, ok := lang.CrossingOf(e)
	if !ok || a.rangeKey != nil {
		return false
	}
	level, ok := b.Param(c.Level)
	if !ok || !level.IsNumber() {
		return false
	}
	now, was := b.CrossingOperands(c)
	if now == nil {
		return false
	}
	a.rangeKey = &rangeKey{column: level.Column, crossing: &crossingKey{c.Direction, now, was}}
	return true
}

// A rangeEnd is a position among the keys of a bucket: before or after the rows with key.
type rangeEnd struct {
	key   float64
	after bool
}

// isAfter reports whether the rows with a key come before e.
func (e rangeEnd) isAfter(key float64) bool { return key < e.key || e.after && key == e.key }

// eventRange returns the range of the levels that the event crosses.
func (k *crossingKey) eventRange(f *expr.Frame) (from, to rangeEnd, ok bool) {
	v, _ := k.previous.Load(f)
	was, ok1 := expr.ToFloat(v)
	v, _ = k.now.Load(f)
	now, ok2 := expr.ToFloat(v)
	switch {
	case !ok1 || !ok2:
		return from, to, false
	case was < now:
		return rangeEnd{was, true}, rangeEnd{now, true}, k.Direction&lang.Upwards != 0
	default:
		return rangeEnd{now, false}, rangeEnd{was, false}, k.Direction&lang.Downwards != 0 && now < was
	}
}

// visitCrossed visits the rows of a bucket whose level the event crosses.
func (a *accessPath) visitCrossed(f *matchFrame, rows *pageStore, ref bucketRef, visit func(rows []uint32)) {
	from, to, ok := a.rangeKey.crossing.eventRange(&f.Frame)
	switch {
	case !ok:
	case ref.bucket != nil:
		ref.bucket.eachBetween(from, to, visit)
	default:
		if level := a.rowRangeValue(rows, ref.row); !from.isAfter(level) && to.isAfter(level) {
			f.single[0] = ref.row
			visit(f.single[:])
		}
	}
}

// eachBetween calls visit with the runs of rows between two ends.
func (b *bucket) eachBetween(from, to rangeEnd, visit func(rows []uint32)) {
	at := sort.Search(len(b.leaves), func(i int) bool {
		keys := b.leaves[i].keys
		return !from.isAfter(keys[len(keys)-1])
	})
	for ; at < len(b.leaves); at++ {
		l := &b.leaves[at]
		first := sort.Search(len(l.keys), func(i int) bool { return !from.isAfter(l.keys[i]) })
		last := sort.Search(len(l.keys), func(i int) bool { return !to.isAfter(l.keys[i]) })
		if first < last {
			visit(l.rows[first:last])
		}
		if last < len(l.keys) {
			return
		}
	}
}
