package match

import (
	"cmp"
	"slices"
	"sort"
)

// leafRows is how many rows a leaf holds before it is split.
const leafRows = 512

// A bucket holds the rows of a rule that agree in all equalities, ordered by
// the param of the rule's range and then by row: a list of leaves, so that an
// insert moves a few kilobytes and a match takes whole leaves. Without a range
// all keys are 0 and none are kept.
type bucket struct {
	leaves []leaf
	ranged bool
}

type leaf struct {
	keys []float64 // empty without a range
	rows []uint32
}

// compareAt orders entry i of l and (key, row).
func (l *leaf) compareAt(i int, key float64, row uint32) int {
	if len(l.keys) > 0 {
		if order := cmp.Compare(l.keys[i], key); order != 0 {
			return order
		}
	}
	return cmp.Compare(l.rows[i], row)
}

// find returns the leaf and the position in it of the first entry not before
// (key, row). The leaf is the last one where all are before.
func (b *bucket) find(key float64, row uint32) (int, int) {
	at := sort.Search(len(b.leaves)-1, func(i int) bool {
		l := &b.leaves[i]
		return l.compareAt(len(l.rows)-1, key, row) >= 0
	})
	l := &b.leaves[at]
	return at, sort.Search(len(l.rows), func(i int) bool { return l.compareAt(i, key, row) >= 0 })
}

func (b *bucket) insert(key float64, row uint32) {
	if len(b.leaves) == 0 {
		b.leaves = make([]leaf, 1)
	}
	at, i := b.find(key, row)
	l := &b.leaves[at]
	if b.ranged {
		l.keys = slices.Insert(l.keys, i, key)
	}
	l.rows = slices.Insert(l.rows, i, row)
	if len(l.rows) >= leafRows {
		b.split(at, i == len(l.rows)-1)
	}
}

// split halves a leaf; one that grows at its end is left nearly full.
func (b *bucket) split(at int, ascending bool) {
	l := &b.leaves[at]
	half := len(l.rows) / 2
	if ascending && at == len(b.leaves)-1 {
		half = len(l.rows) - 1
	}
	right := leaf{rows: slices.Clone(l.rows[half:])}
	l.rows = slices.Clip(slices.Clone(l.rows[:half]))
	if b.ranged {
		right.keys = slices.Clone(l.keys[half:])
		l.keys = slices.Clip(slices.Clone(l.keys[:half]))
	}
	b.leaves = slices.Insert(b.leaves, at+1, right)
}

// remove takes an entry out that was inserted; it reports whether none is left.
func (b *bucket) remove(key float64, row uint32) (empty bool) {
	at, i := b.find(key, row)
	l := &b.leaves[at]
	if b.ranged {
		l.keys = slices.Delete(l.keys, i, i+1)
	}
	l.rows = slices.Delete(l.rows, i, i+1)
	if len(l.rows) == 0 {
		b.leaves = slices.Delete(b.leaves, at, at+1)
	}
	return len(b.leaves) == 0
}

// span calls visit with runs of rows whose key p makes `value op p` true.
func (b *bucket) span(value float64, op relation, visit func(rows []uint32)) {
	// before tells which keys come before the border between hits and others.
	before := func(key float64) bool { return key < value }
	if op == greaterOrEqual || op == less {
		before = func(key float64) bool { return key <= value }
	}
	at := sort.Search(len(b.leaves), func(i int) bool {
		keys := b.leaves[i].keys
		return !before(keys[len(keys)-1])
	})
	prefix := op == greater || op == greaterOrEqual
	if prefix {
		for i := range at {
			visit(b.leaves[i].rows)
		}
	}
	if at < len(b.leaves) {
		l := &b.leaves[at]
		i := sort.Search(len(l.keys), func(i int) bool { return !before(l.keys[i]) })
		if prefix {
			visit(l.rows[:i])
		} else {
			visit(l.rows[i:])
			for i := at + 1; i < len(b.leaves); i++ {
				visit(b.leaves[i].rows)
			}
		}
	}
}

// all calls visit with all rows.
func (b *bucket) all(visit func(rows []uint32)) {
	for i := range b.leaves {
		visit(b.leaves[i].rows)
	}
}
