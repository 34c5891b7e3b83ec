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
func (c *guardTable) pairThreshold() int { return c.listLimitPerKey * max(c.equalityShapes, 4) }

const defaultListLimit = 500

// listSize is how many compounds have a key.
func (c *guardTable) listSize(key uint64) int {
	one, known := c.byKey[key]
	switch {
	case !known:
		return 0
	case !one.listed:
		return 1
	}
	return len(c.lists[one.number].filters)
}

// pairKey is that of two keys, in either order.
func pairKey(a, b uint64) uint64 { return hashMix(min(a, b), max(a, b)) }

// chooseKeys chooses, of the keys that a compound has, the one or the two that it shares
// with the fewest others, and with how many.
func (c *guardTable) chooseKeys(keys []uint64) (first, second, least int) {
	first, second = -1, -1
	for i, key := range keys {
		if n := c.listSize(key); first < 0 || n < least {
			first, least = i, n
		}
	}
	if len(keys) < 2 || least < c.pairThreshold() {
		return first, second, least
	}
	for i := range keys {
		for j := range i {
			// The same key twice is no pair: an event has it once.
			if n := c.listSize(pairKey(keys[i], keys[j])); keys[i] != keys[j] && (second < 0 || n < least) {
				first, second, least = i, j, n
			}
		}
	}
	return first, second, least
}

// add files a compound.
func (c *guardTable) add(key uint64, m guardFingerprints, fl *filter, list []*filter) {
	one, known := c.byKey[key]
	if !known {
		c.byKey[key] = guardEntry{guardFingerprints: m, number: fl.number}
		return
	}
	if !one.listed {
		list[one.number].guardPosition = 0
		one = guardEntry{number: c.newList(one), listed: true}
		c.byKey[key] = one
	}
	l := &c.lists[one.number]
	fl.guardPosition = uint32(len(l.filters))
	l.prefilters, l.signatures, l.filters = append(l.prefilters, m.opening), append(l.signatures, m.sign), append(l.filters, fl.number)
}

// addPair files a compound under two keys that have lists.
func (c *guardTable) addPair(a, b uint64, m guardFingerprints, fl *filter, list []*filter) {
	c.add(pairKey(a, b), m, fl, list)
	c.lists[c.byKey[a].number].pairs++
	c.lists[c.byKey[b].number].pairs++
}

// removePair takes out fl, which was added under two keys.
func (c *guardTable) removePair(a, b uint64, fl *filter, list []*filter) {
	c.remove(pairKey(a, b), fl, list)
	for _, key := range [...]uint64{a, b} {
		c.lists[c.byKey[key].number].pairs--
		c.dropEmptyList(key)
	}
}

// dropEmptyList gives up the list of a key that has no compounds.
func (c *guardTable) dropEmptyList(key uint64) {
	number := c.byKey[key].number
	if l := &c.lists[number]; len(l.filters) == 0 && l.pairs == 0 {
		delete(c.byKey, key)
		*l = guardList{}
		c.free = append(c.free, number)
	}
}

// newList makes a list of what alone has a key.
func (c *guardTable) newList(one guardEntry) (number uint32) {
	l := guardList{prefilters: []prefilter{one.opening}, signatures: []signature{one.sign}, filters: []uint32{one.number}}
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
		c.lists[number] = l
		return number
	}
	c.lists = append(c.lists, l)
	return uint32(len(c.lists) - 1)
}

// remove takes out fl, which was added.
func (c *guardTable) remove(key uint64, fl *filter, list []*filter) {
	one := c.byKey[key]
	if !one.listed {
		assert.That(one.number == fl.number, "the compound %s is not under its key", fl.text)
		delete(c.byKey, key)
		return
	}
	l := &c.lists[one.number]
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
	c.dropEmptyList(key)
}

// search makes the compounds with keys of the event whose signs it meets candidates.
func (c *guardTable) search(o *conjunctionScratch) {
	long := o.listedKeys[:0]
	for _, key := range o.keys {
		if c.scanKey(o, key) {
			long = append(long, key)
		}
	}
	for i, a := range long {
		for _, b := range long[:i] {
			c.scanKey(o, pairKey(a, b))
		}
	}
	o.listedKeys = long
}

// scanKey looks at the compounds with a key; it reports whether there are pairs with it.
func (c *guardTable) scanKey(o *conjunctionScratch, key uint64) (pairs bool) {
	one, known := c.byKey[key]
	switch {
	case !known:
		return false
	case !one.listed:
		if one.sign.matches(&o.fingerprints) == 1 {
			o.candidates = append(o.candidates, one.number)
		}
		return false
	}
	l := &c.lists[one.number]
	o.addKeyPairs()
	for from := 0; from < len(l.filters); from += scanBlock {
		to := min(from+scanBlock, len(l.filters))
		o.scanList(l.prefilters[from:to], l.signatures[from:to], l.filters[from:to])
	}
	return l.pairs > 0
}
