package condition

import (
	"sort"

	celast "cel.dev/cel-go/common/ast"
)

// A levelKey is a conjunct that is true where the row's level lies between what a
// value was and what it is: a span of the bucket with two ends.
type crossingKey struct {
	direction
	now, previous operand
}

// takeCrossing takes a crossing of a level that is a number of the row.
func (w *accessPath) takeCrossing(b *builder, e celast.Expr) bool {
	c, ok := crossingOf(e)
	if !ok || w.rangeKey != nil {
		return false
	}
	level, ok := b.param(c.level)
	if !ok || !level.isNumber() {
		return false
	}
	now, was := b.crossingOperands(c)
	if now == nil {
		return false
	}
	w.rangeKey = &rangeKey{column: level.column, crossing: &crossingKey{c.direction, now, was}}
	return true
}

// An end of a span is a place among the keys of a bucket: before the rows of a
// key, or behind them.
type rangeEnd struct {
	key   float64
	after bool
}

// isAfter reports whether the rows of key come before e.
func (e rangeEnd) isAfter(key float64) bool { return key < e.key || e.after && key == e.key }

// eventRange returns the ends between which the levels are that the event crosses.
func (k *crossingKey) eventRange(f *frame) (from, to rangeEnd, ok bool) {
	v, _ := k.previous.load(f)
	was, ok1 := toFloat(v)
	v, _ = k.now.load(f)
	now, ok2 := toFloat(v)
	switch {
	case !ok1 || !ok2:
		return from, to, false
	case was < now:
		return rangeEnd{was, true}, rangeEnd{now, true}, k.direction&upwards != 0
	default:
		return rangeEnd{now, false}, rangeEnd{was, false}, k.direction&downwards != 0 && now < was
	}
}

// visitCrossed visits those rows of a bucket whose level the event crosses.
func (w *accessPath) visitCrossed(f *matchFrame, rows *pageStore, h bucketRef, visit func(rows []uint32)) {
	from, to, ok := w.rangeKey.crossing.eventRange(&f.frame)
	switch {
	case !ok:
	case h.bucket != nil:
		h.bucket.eachBetween(from, to, visit)
	default:
		if level := w.rangeValue(rows, h.row); !from.isAfter(level) && to.isAfter(level) {
			f.single[0] = h.row
			visit(f.single[:])
		}
	}
}

// eachBetween calls visit with the runs of rows from one end to the other.
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
