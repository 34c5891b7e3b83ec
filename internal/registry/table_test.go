package registry

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// TestTableFindsEveryPlaceUnderItsHash compares a table with a map, through
// growth, collisions, replacement and removal.
func TestTableFindsEveryPlaceUnderItsHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few bits at the top and at the bottom: many collisions, few shards.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 3).Draw(t, "shard")<<62 | rapid.Uint64Range(0, 40).Draw(t, "low")<<rapid.SampledFrom([]int{26, 30, 50}).Draw(t, "shift")
		})
		var tab table
		model := map[uint64][]fanfare.Place{} // by the bits that count
		next := fanfare.Place(1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			h := hash.Draw(t, "hash") &^ (1<<26 - 1)
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case op < 3:
				tab.insert(h|uint64(next)%4, next) // the lowest do not count
				model[h] = append(model[h], next)
				next++
			case op == 3 && len(model[h]) > 0:
				i := rapid.IntRange(0, len(model[h])-1).Draw(t, "which")
				tab.replace(h, model[h][i], next)
				model[h][i] = next
				next++
			case len(model[h]) > 0:
				i := rapid.IntRange(0, len(model[h])-1).Draw(t, "which")
				tab.remove(h, model[h][i])
				model[h] = slices.Delete(model[h], i, i+1)
			default:
				tab.remove(h, next) // not there: no concern
			}
		}
		for h, want := range model {
			first, others := tab.lookup(h)
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

func TestLiveSetKeepsEachBitApart(t *testing.T) {
	l := new(liveSet)
	places := []fanfare.Place{1, 63, 64, 1<<livePageBits - 1, 1 << livePageBits, 1<<32 - 1}
	for _, p := range places {
		if l.has(p) {
			t.Errorf("%d is set before", p)
		}
		l.set(p)
	}
	l.clear(64)
	for _, p := range places {
		if l.has(p) != (p != 64) {
			t.Errorf("has(%d) = %v", p, l.has(p))
		}
	}
}

func BenchmarkTableInsert(b *testing.B) {
	h := newHasher()
	var tab table
	for i := range b.N {
		tab.insert(h.clientID(uint32(i), "x"), fanfare.Place(i+1))
	}
}
