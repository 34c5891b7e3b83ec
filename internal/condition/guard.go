package condition

import (
	"slices"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// A guardTable leads to the conjunctions whose guard is one or two equalities, by the hash of their
// fields and values. The topic has one table, so that an event finds the conjunctions with its
// values, and no others, for any number of fields. Conjunctions without a guard are under
// everyEventKey.
type guardTable struct {
	byKey           map[uint64]guardEntry
	lists           []guardList
	free            []uint32 // numbers of free lists
	equalityShapes  int      // conjunct shapes that are equalities
	listLimitPerKey int      // length of a list, for each of them, before pairs are used
}

// A guardEntry is the only conjunction of a key, or the number of a list.
type guardEntry struct {
	guardFingerprints
	number uint32
	listed bool
}

// A guardList holds the conjunctions with the same key. Conjunctions with one more key may be under
// the pair of keys if the list is long; the list exists as long as they do. Prefilters are stored
// apart from signatures, because they exclude nearly all conjunctions and then nothing else is
// read.
type guardList struct {
	prefilters []prefilter
	signatures []signature
	filters    []uint32
	pairs      uint32 // number of conjunctions under a pair with this key
}

// pairThreshold is the length of a list from which conjunctions go under pairs of keys. An event
// scans the lists of all its keys and looks up all pairs of those with long lists. A lookup of a
// pair that is not in the cache takes as long as scanning several hundred conjunctions, and
// starting to scan it takes as long again. All pairs together therefore take as long as lists with
// 500 conjunctions for each key.
func (g *guardTable) pairThreshold() int { return g.listLimitPerKey * max(g.equalityShapes, 4) }

const defaultListLimit = 500

// listSize returns the number of conjunctions with a key.
func (g *guardTable) listSize(key uint64) int {
	one, known := g.byKey[key]
	switch {
	case !known:
		return 0
	case !one.listed:
		return 1
	}
	return len(g.lists[one.number].filters)
}

// pairKey returns the key of two keys, in either order.
func pairKey(a, b uint64) uint64 { return hashMix(min(a, b), max(a, b)) }

// chooseKeys chooses the key, or the pair of keys, that the fewest other conjunctions have, and
// returns their number.
func (g *guardTable) chooseKeys(keys []uint64) (first, second, least int) {
	first, second = -1, -1
	for i, key := range keys {
		if n := g.listSize(key); first < 0 || n < least {
			first, least = i, n
		}
	}
	if len(keys) < 2 || least < g.pairThreshold() {
		return first, second, least
	}
	for i := range keys {
		for j := range i {
			// The same key twice is no pair, because an event has it once.
			if n := g.listSize(pairKey(keys[i], keys[j])); keys[i] != keys[j] && (second < 0 || n < least) {
				first, second, least = i, j, n
			}
		}
	}
	return first, second, least
}

// add adds a conjunction.
func (g *guardTable) add(key uint64, m guardFingerprints, fl *filter, list []*filter) {
	one, known := g.byKey[key]
	if !known {
		g.byKey[key] = guardEntry{guardFingerprints: m, number: fl.number}
		return
	}
	if !one.listed {
		list[one.number].guardPosition = 0
		one = guardEntry{number: g.newList(one), listed: true}
		g.byKey[key] = one
	}
	l := &g.lists[one.number]
	fl.guardPosition = uint32(len(l.filters))
	l.prefilters, l.signatures, l.filters = append(l.prefilters, m.opening), append(l.signatures, m.sign), append(l.filters, fl.number)
}

// addPair adds a conjunction under two keys that have lists.
func (g *guardTable) addPair(a, b uint64, m guardFingerprints, fl *filter, list []*filter) {
	g.add(pairKey(a, b), m, fl, list)
	g.lists[g.byKey[a].number].pairs++
	g.lists[g.byKey[b].number].pairs++
}

// removePair removes fl, which addPair added.
func (g *guardTable) removePair(a, b uint64, fl *filter, list []*filter) {
	g.remove(pairKey(a, b), fl, list)
	for _, key := range [...]uint64{a, b} {
		g.lists[g.byKey[key].number].pairs--
		g.dropEmptyList(key)
	}
}

// dropEmptyList removes the list of a key without conjunctions.
func (g *guardTable) dropEmptyList(key uint64) {
	number := g.byKey[key].number
	if l := &g.lists[number]; len(l.filters) == 0 && l.pairs == 0 {
		delete(g.byKey, key)
		*l = guardList{}
		g.free = append(g.free, number)
	}
}

// newList makes a list with the only conjunction of a key.
func (g *guardTable) newList(one guardEntry) (number uint32) {
	l := guardList{prefilters: []prefilter{one.opening}, signatures: []signature{one.sign}, filters: []uint32{one.number}}
	if last := len(g.free) - 1; last >= 0 {
		number, g.free = g.free[last], g.free[:last]
		g.lists[number] = l
		return number
	}
	g.lists = append(g.lists, l)
	return uint32(len(g.lists) - 1)
}

// remove removes fl, which add added.
func (g *guardTable) remove(key uint64, fl *filter, list []*filter) {
	one := g.byKey[key]
	if !one.listed {
		assert.True(one.number == fl.number, "the filter %s is not listed under its key", fl.text)
		delete(g.byKey, key)
		return
	}
	l := &g.lists[one.number]
	assert.True(l.filters[fl.guardPosition] == fl.number, "the filter %s is not at its position in the list", fl.text)
	last := len(l.filters) - 1
	if at := fl.guardPosition; int(at) < last {
		l.prefilters[at], l.signatures[at], l.filters[at] = l.prefilters[last], l.signatures[last], l.filters[last]
		list[l.filters[at]].guardPosition = at
	}
	l.prefilters, l.signatures, l.filters = l.prefilters[:last], l.signatures[:last], l.filters[:last]
	if cap(l.filters) > 4*last {
		l.prefilters, l.signatures, l.filters = slices.Clone(l.prefilters), slices.Clone(l.signatures), slices.Clone(l.filters)
	}
	g.dropEmptyList(key)
}

// search appends to the candidates the conjunctions under keys of the event whose signatures match.
func (g *guardTable) search(s *conjunctionScratch) {
	long := s.listedKeys[:0]
	for _, key := range s.keys {
		if g.scanKey(s, key) {
			long = append(long, key)
		}
	}
	for i, a := range long {
		for _, b := range long[:i] {
			g.scanKey(s, pairKey(a, b))
		}
	}
	s.listedKeys = long
}

// scanKey scans the conjunctions with a key; it reports whether there are pairs with it.
func (g *guardTable) scanKey(s *conjunctionScratch, key uint64) (pairs bool) {
	one, known := g.byKey[key]
	switch {
	case !known:
		return false
	case !one.listed:
		if one.sign.matches(&s.fingerprints) == 1 {
			s.candidates = append(s.candidates, one.number)
		}
		return false
	}
	l := &g.lists[one.number]
	s.addKeyPairs()
	for from := 0; from < len(l.filters); from += scanBlock {
		to := min(from+scanBlock, len(l.filters))
		s.scanList(l.prefilters[from:to], l.signatures[from:to], l.filters[from:to])
	}
	return l.pairs > 0
}
