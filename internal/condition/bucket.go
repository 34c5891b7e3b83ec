package condition

import (
	"slices"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// maxLeafRows is the number of rows at which a leaf is split.
const maxLeafRows = 512

// A bucketRef is a bucket, or the only row of one that never had more.
type bucketRef struct {
	row    uint32
	bucket *bucket
}

func (ref bucketRef) size() (n int) {
	if ref.bucket == nil {
		return 1
	}
	for i := range ref.bucket.leaves {
		n += len(ref.bucket.leaves[i].rows)
	}
	return n
}

// A bucket holds the rows of a table (or their owners, see covering) with equal keys, ordered by
// the param of the range key and then by row. It is a list of leaves, so that an insert moves a few
// kilobytes and a match takes whole leaves. Without a range key all keys are 0 and are not stored.
type bucket struct {
	leaves []leaf
	ranged bool
}

type leaf struct {
	keys []float64 // empty without a range key
	rows []uint32
}

// isBefore reports whether entry i of l is before (key, row). No key is NaN.
func (l *leaf) isBefore(i int, key float64, row uint32) bool {
	if len(l.keys) > 0 && l.keys[i] != key {
		return l.keys[i] < key
	}
	return l.rows[i] < row
}

// find returns the leaf and the position in it of the first entry that is not before (key, row), or
// the end of the last leaf. It contains its own binary searches, because comparing takes half of
// the time of an insert.
func (b *bucket) find(key float64, row uint32) (int, int) {
	at, high := 0, len(b.leaves)-1
	for at < high {
		middle := int(uint(at+high) >> 1)
		if l := &b.leaves[middle]; l.isBefore(len(l.rows)-1, key, row) {
			at = middle + 1
		} else {
			high = middle
		}
	}
	l, i := &b.leaves[at], 0
	for high = len(l.rows); i < high; {
		if middle := int(uint(i+high) >> 1); l.isBefore(middle, key, row) {
			i = middle + 1
		} else {
			high = middle
		}
	}
	return at, i
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
	if len(l.rows) >= maxLeafRows {
		b.split(at, i == len(l.rows)-1)
	}
}

// split splits a leaf in half. The last leaf stays nearly full if it grows at its end.
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

// remove removes an entry and reports whether the bucket is empty.
func (b *bucket) remove(key float64, row uint32) (empty bool) {
	at, i := b.find(key, row)
	l := &b.leaves[at]
	assert.True(i < len(l.rows) && l.rows[i] == row && (!b.ranged || l.keys[i] == key), "row %d is not in the bucket from which it is removed, at %v", row, key)
	if b.ranged {
		l.keys = slices.Delete(l.keys, i, i+1)
	}
	l.rows = slices.Delete(l.rows, i, i+1)
	switch {
	case len(l.rows) == 0:
		b.leaves = slices.Delete(b.leaves, at, at+1)
	case cap(l.rows) > 4*len(l.rows):
		l.keys, l.rows = slices.Clone(l.keys), slices.Clone(l.rows)
	}
	return len(b.leaves) == 0
}

// eachInRange calls visit with runs of rows whose key p makes `value op p` true.
func (b *bucket) eachInRange(value float64, op expr.Comparison, visit func(rows []uint32)) {
	including := op == expr.GreaterOrEqual || op == expr.Less // keys that equal value come before the border
	at, end := 0, len(b.leaves)
	for at < end {
		middle := (at + end) / 2
		keys := b.leaves[middle].keys
		if last := keys[len(keys)-1]; last < value || including && last == value {
			at = middle + 1
		} else {
			end = middle
		}
	}
	prefix := op == expr.Greater || op == expr.GreaterOrEqual
	if prefix {
		for i := range at {
			visit(b.leaves[i].rows)
		}
	}
	if at < len(b.leaves) {
		l := &b.leaves[at]
		i := countBelow(l.keys, value, including)
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

// countBelow returns how many of the sorted keys are less than value, or with including equal to
// it.
func countBelow(keys []float64, value float64, including bool) (at int) {
	for end := len(keys); at < end; {
		middle := (at + end) / 2
		if key := keys[middle]; key < value || including && key == value {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at
}

// each calls visit with all rows.
func (b *bucket) each(visit func(rows []uint32)) {
	for i := range b.leaves {
		visit(b.leaves[i].rows)
	}
}
