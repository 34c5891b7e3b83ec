package condition

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// The test compares a bucket with a plain list over many splits.
func TestABucketIsASortedList(t *testing.T) {
	type entry struct {
		key float64
		row uint32
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bucket{ranged: rapid.Bool().Draw(t, "ranged")}
		var list []entry
		next := uint32(0)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				keys := rapid.IntRange(1, 2000).Draw(t, "keys")
				step := rapid.IntRange(0, 2).Draw(t, "step") // ascending, equal, scattered
				for i := range rapid.IntRange(1, 1500).Draw(t, "rows") {
					e := entry{row: next}
					next++
					if b.ranged {
						e.key = float64([]int{i, 7, i * 7919 % keys}[step])
					}
					b.insert(e.key, e.row)
					list = append(list, e)
				}
			},
			"remove": func(t *rapid.T) {
				for range min(len(list), rapid.IntRange(1, 1500).Draw(t, "rows")) {
					i := int(list[len(list)/2].row) * 31 % len(list)
					if b.remove(list[i].key, list[i].row) != (len(list) == 1) {
						t.Fatal("remove is wrong about what is left")
					}
					list = slices.Delete(list, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if got := collectRows(b.each); !slices.IsSorted(got) && !b.ranged || len(got) != len(list) {
					t.Fatalf("all gives %d rows, want %d", len(got), len(list))
				}
				if !b.ranged {
					return
				}
				value := float64(rapid.IntRange(-1, 2000).Draw(t, "value"))
				for op := expr.Less; op <= expr.GreaterOrEqual; op++ {
					var want []uint32
					for _, e := range list {
						if op.MatchesOrder(cmp.Compare(value, e.key)) {
							want = append(want, e.row)
						}
					}
					got := collectRows(func(visit func([]uint32)) { b.eachInRange(value, op, visit) })
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Fatalf("span %v %d: got %d rows, want %d", value, op, len(got), len(want))
					}
				}
			},
		})
	})
}

func collectRows(walk func(func([]uint32))) []uint32 {
	var all []uint32
	walk(func(rows []uint32) { all = append(all, rows...) })
	return all
}

func TestABucketReleasesTheMemoryOfRemovedRows(t *testing.T) {
	const n, every = 50_000, 200
	b := bucket{ranged: true}
	for row := range uint32(n) {
		b.insert(float64(row*7919%n), row)
	}
	for row := range uint32(n) {
		if row%every != 0 {
			b.remove(float64(row*7919%n), row)
		}
	}
	left, capacity := 0, 0
	for i := range b.leaves {
		left, capacity = left+len(b.leaves[i].rows), capacity+cap(b.leaves[i].rows)+cap(b.leaves[i].keys)
	}
	if left != n/every || capacity > 16*left {
		t.Errorf("%d rows have the capacity of %d", left, capacity)
	}
}
