package condition

import "slices"

// guards lead to the compounds with an equality as their guard, or two, by fields and
// values: one table for all of the topic, so that an event meets those that ask for
// what it says, and no others, however many fields there are. Those that have no guard
// at all are under everyEvent.
type guards struct {
	byKey map[uint64]guarded
	lists []guardedList
	free  []uint32 // of the lists
	keys  int      // terms that are equalities
	crowd int      // for each of them, how long lists are before there are pairs
}

// A guarded is the only compound of a key, or the number of their list.
type guarded struct {
	marking
	number uint32
	listed bool
}

// A guardedList has the compounds that share a key. Those that have one more key
// may be under both, where it is long; it lasts as long as they do. Openings stand apart
// from signs: nearly all compounds are passed by them, and no more of them is read.
type guardedList struct {
	openings []opening
	signs    []sign
	filters  []uint32
	pairs    uint32 // compounds that are under it and another key
}

// pairsFrom is how long lists grow before compounds go under pairs of keys: an event
// looks at the lists of all its keys, and for those of all pairs of the long ones. To look
// for one that is not in the cache takes as long as to pass some hundred compounds, to
// begin with it as long again, and so all pairs as long as lists of five hundred times as
// many as there are keys.
func (c *guards) pairsFrom() int { return c.crowd * max(c.keys, 4) }

const defaultCrowd = 500

// size is how many compounds have a key.
func (c *guards) size(key uint64) int {
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
func pairKey(a, b uint64) uint64 { return mix(min(a, b), max(a, b)) }

// guard chooses, of the keys that a compound has, the one or the two that it shares
// with the fewest others, and with how many.
func (c *guards) guard(keys []uint64) (first, second, least int) {
	first, second = -1, -1
	for i, key := range keys {
		if n := c.size(key); first < 0 || n < least {
			first, least = i, n
		}
	}
	if len(keys) < 2 || least < c.pairsFrom() {
		return first, second, least
	}
	for i := range keys {
		for j := range i {
			// The same key twice is no pair: an event has it once.
			if n := c.size(pairKey(keys[i], keys[j])); keys[i] != keys[j] && (second < 0 || n < least) {
				first, second, least = i, j, n
			}
		}
	}
	return first, second, least
}

// add files a compound.
func (c *guards) add(key uint64, m marking, fl *filter, list []*filter) {
	one, known := c.byKey[key]
	if !known {
		c.byKey[key] = guarded{marking: m, number: fl.number}
		return
	}
	if !one.listed {
		list[one.number].at = 0
		one = guarded{number: c.newList(one), listed: true}
		c.byKey[key] = one
	}
	l := &c.lists[one.number]
	fl.at = uint32(len(l.filters))
	l.openings, l.signs, l.filters = append(l.openings, m.opening), append(l.signs, m.sign), append(l.filters, fl.number)
}

// addPair files a compound under two keys that have lists.
func (c *guards) addPair(a, b uint64, m marking, fl *filter, list []*filter) {
	c.add(pairKey(a, b), m, fl, list)
	c.lists[c.byKey[a].number].pairs++
	c.lists[c.byKey[b].number].pairs++
}

// removePair takes out fl, which was added under two keys.
func (c *guards) removePair(a, b uint64, fl *filter, list []*filter) {
	c.remove(pairKey(a, b), fl, list)
	for _, key := range [...]uint64{a, b} {
		c.lists[c.byKey[key].number].pairs--
		c.drop(key)
	}
}

// drop gives up the list of a key that has no compounds.
func (c *guards) drop(key uint64) {
	number := c.byKey[key].number
	if l := &c.lists[number]; len(l.filters) == 0 && l.pairs == 0 {
		delete(c.byKey, key)
		*l = guardedList{}
		c.free = append(c.free, number)
	}
}

// newList makes a list of what alone has a key.
func (c *guards) newList(one guarded) (number uint32) {
	l := guardedList{openings: []opening{one.opening}, signs: []sign{one.sign}, filters: []uint32{one.number}}
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
		c.lists[number] = l
		return number
	}
	c.lists = append(c.lists, l)
	return uint32(len(c.lists) - 1)
}

// remove takes out fl, which was added.
func (c *guards) remove(key uint64, fl *filter, list []*filter) {
	one := c.byKey[key]
	if !one.listed {
		assert(one.number == fl.number, "the compound %s is not under its key", fl.text)
		delete(c.byKey, key)
		return
	}
	l := &c.lists[one.number]
	assert(l.filters[fl.at] == fl.number, "the compound %s is not where it was filed", fl.text)
	last := len(l.filters) - 1
	if at := fl.at; int(at) < last {
		l.openings[at], l.signs[at], l.filters[at] = l.openings[last], l.signs[last], l.filters[last]
		list[l.filters[at]].at = at
	}
	l.openings, l.signs, l.filters = l.openings[:last], l.signs[:last], l.filters[:last]
	if cap(l.filters) > 4*last {
		l.openings, l.signs, l.filters = slices.Clone(l.openings), slices.Clone(l.signs), slices.Clone(l.filters)
	}
	c.drop(key)
}

// search makes the compounds with keys of the event whose signs it meets candidates.
func (c *guards) search(o *lookout) {
	long := o.long[:0]
	for _, key := range o.keys {
		if c.visit(o, key) {
			long = append(long, key)
		}
	}
	for i, a := range long {
		for _, b := range long[:i] {
			c.visit(o, pairKey(a, b))
		}
	}
	o.long = long
}

// visit looks at the compounds with a key; it reports whether there are pairs with it.
func (c *guards) visit(o *lookout, key uint64) (pairs bool) {
	one, known := c.byKey[key]
	switch {
	case !known:
		return false
	case !one.listed:
		if one.sign.meets(&o.says) == 1 {
			o.candidates = append(o.candidates, one.number)
		}
		return false
	}
	l := &c.lists[one.number]
	o.pair()
	for from := 0; from < len(l.filters); from += atOnce {
		to := min(from+atOnce, len(l.filters))
		o.scan(l.openings[from:to], l.signs[from:to], l.filters[from:to])
	}
	return l.pairs > 0
}
