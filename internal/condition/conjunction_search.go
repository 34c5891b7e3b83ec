package condition

import (
	"slices"
)

// A lookout is the working space in which the compounds of an event are found.
type conjunctionScratch struct {
	fingerprints fingerprintSet // what the event says
	keyPairs     fingerprintSet // which two of its keys it has: for openings
	pairsAdded   bool           // both is of this event
	keys         []uint64       // of guards that it meets, everyEvent first
	listedKeys   []uint64       // those of them that are in pairs
	eventValues  []eventValue   // by term

	survivors  [scanBlock]uint16    // what the openings have left of a part of a list
	signatures [scanBlock]signature // and its signs

	candidates []uint32  // compounds to be tested
	filters    []*filter // some of them
	rows       []uint32  // all their parts
	rowValues  []uint64  // and what these ask for
}

// scanBlock is how many compounds of a list are looked at in one go.
const scanBlock = 1024

// begin forgets the last event.
func (o *conjunctionScratch) begin() {
	o.fingerprints.reset()
	o.keyPairs.reset()
	o.pairsAdded = false
	o.keys = append(o.keys[:0], everyEvent)
	o.eventValues, o.candidates = o.eventValues[:0], o.candidates[:0]
}

// maxPaired is how many keys an event has at most of which each two are said: of more,
// the board would be full of them.
const maxPaired = 64

// addKeyPairs says which two keys the event has.
func (o *conjunctionScratch) addKeyPairs() {
	if o.pairsAdded {
		return
	}
	o.pairsAdded = true
	keys := o.keys[1:]
	if len(keys) > maxPaired {
		o.keyPairs.addAll()
		return
	}
	for i, a := range keys {
		for _, b := range keys[:i] {
			o.keyPairs.add(fingerprintOf(pairKey(a, b)))
		}
	}
}

// scanList makes those of a part of a list candidates whose openings and signs the event
// meets. No branch hangs on what a compound asks for: of the few in a hundred that are
// left each would be guessed wrong. Their signs, which are far from each other, are
// fetched by a loop that does nothing else, so that they are on their way together.
func (o *conjunctionScratch) scanList(openings []prefilter, signs []signature, filters []uint32) {
	n := 0
	for i, opening := range openings {
		o.survivors[n] = uint16(i)
		n += o.keyPairs.has(uint16(opening)) & o.fingerprints.has(uint16(opening>>16))
	}
	left := o.survivors[:n]
	for k, i := range left {
		o.signatures[k] = signs[i]
	}
	for k, i := range left {
		if o.signatures[k].matches(&o.fingerprints) == 1 {
			o.candidates = append(o.candidates, filters[i])
		}
	}
}

// testBlock is how many candidates are tested in one go.
const testBlock = 256

// testCandidates keeps the candidates all of whose conjuncts are true. What they ask for lies
// anywhere in memory, five steps away; each step is made for all of them before the
// next, so that it is waited for once.
func (s *filters) testCandidates(f *matchFrame) {
	o := f.scratch
	for some := range slices.Chunk(o.candidates, testBlock) {
		o.filters, o.rows, o.rowValues = o.filters[:0], o.rows[:0], o.rowValues[:0]
		for _, number := range some {
			o.filters = append(o.filters, s.list[number])
		}
		for _, fl := range o.filters {
			o.rows = append(o.rows, fl.conjuncts...)
		}
		for _, row := range o.rows {
			p := s.pages.page(row)
			o.rowValues = append(o.rowValues, p.table.conjunct.rowValue(p, int(row&pageMask)))
		}
		asked := o.rowValues
		for _, fl := range o.filters {
			if s.conjunctsHold(f, fl.conjuncts, asked) {
				f.addFilter(fl)
			}
			asked = asked[len(fl.conjuncts):]
		}
		clear(o.filters)
	}
}

// conjunctsHold reports whether the conjuncts in some rows, which ask for that, are all true.
func (s *filters) conjunctsHold(f *matchFrame, rows []uint32, asked []uint64) bool {
	for i, row := range rows {
		p := s.pages.page(row)
		if !p.table.conjunct.holds(f, p, int(row&pageMask), asked[i]) {
			return false
		}
	}
	return true
}
