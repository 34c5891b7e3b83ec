package matching

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare/internal/bench/loadgen"
)

// A limitMatch does the same work without conditions. It knows the content of the events
// and has only slices.
type limitMatch struct {
	// answer appends the row ids of the subscriptions that match event i to dst.
	answer func(i int, data []byte, dst []uint32) []uint32
	// exact tells that these are the true matches. Otherwise the limit is that of
	// reading the event, and nothing is appended.
	exact bool
}

// ordered has rows by group, ordered by a threshold: two slices for each group.
type ordered []struct {
	thresholds []float64
	places     []uint32
}

// newOrdered orders n rows in groups.
func newOrdered(groups, n int, row func(i int) (group int, threshold float64)) ordered {
	type entry struct {
		threshold float64
		place     uint32
	}
	rows := make([][]entry, groups)
	for i := range n {
		group, threshold := row(i)
		rows[group] = append(rows[group], entry{threshold, uint32(placeOf(i))})
	}
	o := make(ordered, groups)
	for g, entries := range rows {
		slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.threshold, b.threshold) })
		o[g].thresholds, o[g].places = make([]float64, len(entries)), make([]uint32, len(entries))
		for i, e := range entries {
			o[g].thresholds[i], o[g].places[i] = e.threshold, e.place
		}
		rows[g] = nil
	}
	return o
}

// upTo appends the row ids whose threshold the value reaches.
func (o ordered) upTo(group int, value float64, dst []uint32) []uint32 {
	g := &o[group]
	low, high := 0, len(g.thresholds)
	for low < high {
		if middle := int(uint(low+high) >> 1); g.thresholds[middle] <= value {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return append(dst, g.places[:low]...)
}

// newByteScan returns a function that reads each byte once, as a JSON parser must, and
// counts the structural characters.
func newByteScan() func(data []byte) (parts int) {
	var parting [256]byte
	for _, c := range []byte(`{}[]",:\`) {
		parting[c] = 1
	}
	return func(data []byte) (parts int) {
		for _, c := range data {
			parts += int(parting[c])
		}
		return parts
	}
}

// lookUp is the limit if all conditions are different: it reads each byte of the event,
// and for each member it reads one entry of a table with a word for every subscription.
func lookUp(n int) limitMatch {
	size := 1
	for size < n {
		size *= 2
	}
	table := make([]uint32, size)
	return limitMatch{answer: func(_ int, data []byte, dst []uint32) []uint32 {
		hash, found := uint64(0), uint32(0)
		for _, c := range data {
			hash = (hash ^ uint64(c)) * 0x100000001b3
			if c == ',' || c == '}' {
				found |= table[loadgen.Mix(hash)&uint64(size-1)]
				hash = 0
			}
		}
		return dst[:len(dst)+int(found)] // the table is empty
	}}
}
