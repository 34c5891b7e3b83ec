package condition

import (
	"sort"

	celast "cel.dev/cel-go/common/ast"
)

// A levelKey is a conjunct that is true where the row's level lies between what a
// value was and what it is: a span of the bucket with two ends.
type levelKey struct {
	direction
	now, was operand
}

// takeCrossing takes a crossing of a level that is a number of the row.
func (w *way) takeCrossing(b *builder, e celast.Expr) bool {
	c, ok := crossingOf(e)
	if !ok || w.span != nil {
		return false
	}
	level, ok := b.param(c.level)
	if !ok || !level.isNumber() {
		return false
	}
	now, was := b.followed(c)
	if now == nil {
		return false
	}
	w.span = &spanKey{column: level.column, crossed: &levelKey{c.direction, now, was}}
	return true
}

// An end of a span is a place among the keys of a bucket: before the rows of a
// key, or behind them.
type end struct {
	key    float64
	behind bool
}

// isBehind reports whether the rows of key come before e.
func (e end) isBehind(key float64) bool { return key < e.key || e.behind && key == e.key }

// between returns the ends between which the levels are that the event crosses.
func (k *levelKey) between(f *frame) (from, to end, ok bool) {
	v, _ := k.was.load(f)
	was, ok1 := toFloat(v)
	v, _ = k.now.load(f)
	now, ok2 := toFloat(v)
	switch {
	case !ok1 || !ok2:
		return from, to, false
	case was < now:
		return end{was, true}, end{now, true}, k.direction&upwards != 0
	default:
		return end{now, false}, end{was, false}, k.direction&downwards != 0 && now < was
	}
}

// visitCrossed visits those rows of a bucket whose level the event crosses.
func (w *way) visitCrossed(f *frame, rows *rows, h handle, visit func(rows []uint32)) {
	from, to, ok := w.span.crossed.between(f)
	switch {
	case !ok:
	case h.many != nil:
		h.many.between(from, to, visit)
	default:
		if level := w.order(rows, h.row); !from.isBehind(level) && to.isBehind(level) {
			f.one[0] = h.row
			visit(f.one[:])
		}
	}
}

// between calls visit with the runs of rows from one end to the other.
func (b *bucket) between(from, to end, visit func(rows []uint32)) {
	at := sort.Search(len(b.leaves), func(i int) bool {
		keys := b.leaves[i].keys
		return !from.isBehind(keys[len(keys)-1])
	})
	for ; at < len(b.leaves); at++ {
		l := &b.leaves[at]
		first := sort.Search(len(l.keys), func(i int) bool { return !from.isBehind(l.keys[i]) })
		last := sort.Search(len(l.keys), func(i int) bool { return !to.isBehind(l.keys[i]) })
		if first < last {
			visit(l.rows[first:last])
		}
		if last < len(l.keys) {
			return
		}
	}
}
