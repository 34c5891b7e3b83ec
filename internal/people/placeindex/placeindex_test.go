package placeindex

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// TestHashIndexMatchesAMap compares an index with a map while it grows and while places
// collide, are replaced and are removed.
func TestHashIndexMatchesAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few bits at the top and at the bottom: many collisions, few shards.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 3).Draw(t, "shard")<<62 | rapid.Uint64Range(0, 40).Draw(t, "low")<<rapid.SampledFrom([]int{26, 30, 50}).Draw(t, "shift")
		})
		var index HashIndex
		model := map[uint64][]fanfare.RowID{} // by the bits that count
		next := fanfare.RowID(1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			h := hash.Draw(t, "hash") &^ (1<<26 - 1)
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case op < 3:
				index.Insert(h|uint64(next)%4, next) // the lowest bits are ignored
				model[h] = append(model[h], next)
				next++
			case op == 3 && len(model[h]) > 0:
				i := rapid.IntRange(0, len(model[h])-1).Draw(t, "which")
				index.Replace(h, model[h][i], next)
				model[h][i] = next
				next++
			case len(model[h]) > 0:
				i := rapid.IntRange(0, len(model[h])-1).Draw(t, "which")
				index.Remove(h, model[h][i])
				model[h] = slices.Delete(model[h], i, i+1)
			default:
				index.Remove(h, next) // an absent place changes nothing
			}
		}
		for h, want := range model {
			first, others := index.Lookup(h)
			got := others
			if first != 0 {
				got = append(got, first)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("hash %x: found %v, want %v", h, got, want)
			}
		}
	})
}

func TestActiveSetKeepsBitsApart(t *testing.T) {
	l := new(ActiveSet)
	places := []fanfare.RowID{1, 63, 64, 1<<activePageBits - 1, 1 << activePageBits, 1<<32 - 1}
	for _, p := range places {
		if l.Has(p) {
			t.Errorf("%d is set before", p)
		}
		l.Set(p)
	}
	l.Clear(64)
	for _, p := range places {
		if l.Has(p) != (p != 64) {
			t.Errorf("has(%d) = %v", p, l.Has(p))
		}
	}
}

func BenchmarkHashIndexInsert(b *testing.B) {
	var index HashIndex
	for i := range b.N {
		index.Insert(uint64(i)*0x9e3779b97f4a7c15, fanfare.RowID(i+1))
	}
}
