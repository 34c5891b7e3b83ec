package condition

import (
	"slices"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// guardTable lead to the compounds with an equality as their guard, or two, by fields and
// values: one table for all of the topic, so that an event meets those that ask for
// what it says, and no others, however many fields there are. Those that have no guard
// at all are under everyEvent.
type guardTable struct {
	byKey           map[uint64]guardEntry
	lists           []guardList
	free            []uint32 // of the lists
	equalityShapes  int      // terms that are equalities
	listLimitPerKey int      // for each of them, how long lists are before there are pairs
}

// A guarded is the only compound of a key, or the number of their list.
type guardEntry struct {
	guardFingerprints
	number uint32
	listed bool
}

// A guardedList has the compounds that share a key. Those that have one more key
// may be under both, where it is long; it lasts as long as they do. Openings stand apart
// from signs: nearly all compounds are passed by them, and no more of them is read.
type guardList struct {
	prefilters []prefilter
	signatures []signature
	filters    []uint32
	pairs      uint32 // compounds that are under it and another key
}

// pairThreshold is how long lists grow before compounds go under pairs of keys: an event
// looks at the lists of all its keys, and for those of all pairs of the long ones. To look
// for one that is not in the cache takes as long as to pass some hundred compounds, to
// begin with it as long again, and so all pairs as long as lists of five hundred times as
// many as there are keys.
func (g *guardTable) pairThreshold() int { return g.listLimitPerKey * max(g.equalityShapes, 4) }

const defaultListLimit = 500

// listSize is how many compounds have a key.
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

// pairKey is that of two keys, in either order.
func pairKey(a, b uint64) uint64 { return hashMix(min(a, b), max(a, b)) }

// chooseKeys chooses, of the keys that a compound has, the one or the two that it shares
// with the fewest others, and with how many.
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
			// The same key twice is no pair: an event has it once.
			if n := g.listSize(pairKey(keys[i], keys[j])); keys[i] != keys[j] && (second < 0 || n < least) {
				first, second, least = i, j, n
			}
		}
	}
	return first, second, least
}

// add files a compound.
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

// addPair files a compound under two keys that have lists.
func (g *guardTable) addPair(a, b uint64, m guardFingerprints, fl *filter, list []*filter) {
	g.add(pairKey(a, b), m, fl, list)
	g.lists[g.byKey[a].number].pairs++
	g.lists[g.byKey[b].number].pairs++
}

// removePair takes out fl, which was added under two keys.
func (g *guardTable) removePair(a, b uint64, fl *filter, list []*filter) {
	g.remove(pairKey(a, b), fl, list)
	for _, key := range [...]uint64{a, b} {
		g.lists[g.byKey[key].number].pairs--
		g.dropEmptyList(key)
	}
}

// dropEmptyList gives up the list of a key that has no compounds.
func (g *guardTable) dropEmptyList(key uint64) {
	number := g.byKey[key].number
	if l := &g.lists[number]; len(l.filters) == 0 && l.pairs == 0 {
		delete(g.byKey, key)
		*l = guardList{}
		g.free = append(g.free, number)
	}
}

// newList makes a list of what alone has a key.
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

// remove takes out fl, which was added.
func (g *guardTable) remove(key uint64, fl *filter, list []*filter) {
	one := g.byKey[key]
	if !one.listed {
		assert.That(one.number == fl.number, "the compound %s is not under its key", fl.text)
		delete(g.byKey, key)
		return
	}
	l := &g.lists[one.number]
	assert.That(l.filters[fl.guardPosition] == fl.number, "the compound %s is not where it was filed", fl.text)
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

// search makes the compounds with keys of the event whose signs it meets candidates.
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

// scanKey looks at the compounds with a key; it reports whether there are pairs with it.
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
