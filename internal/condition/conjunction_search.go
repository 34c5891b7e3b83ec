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
func (s *conjunctionScratch) begin() {
	s.fingerprints.reset()
	s.keyPairs.reset()
	s.pairsAdded = false
	s.keys = append(s.keys[:0], everyEventKey)
	s.eventValues, s.candidates = s.eventValues[:0], s.candidates[:0]
}

// maxPaired is how many keys an event has at most of which each two are said: of more,
// the board would be full of them.
const maxPaired = 64

// addKeyPairs says which two keys the event has.
func (s *conjunctionScratch) addKeyPairs() {
	if s.pairsAdded {
		return
	}
	s.pairsAdded = true
	keys := s.keys[1:]
	if len(keys) > maxPaired {
		s.keyPairs.addAll()
		return
	}
	for i, a := range keys {
		for _, b := range keys[:i] {
			s.keyPairs.add(fingerprintOf(pairKey(a, b)))
		}
	}
}

// scanList makes those of a part of a list candidates whose openings and signs the event
// meets. No branch hangs on what a compound asks for: of the few in a hundred that are
// left each would be guessed wrong. Their signs, which are far from each other, are
// fetched by a loop that does nothing else, so that they are on their way together.
func (s *conjunctionScratch) scanList(openings []prefilter, signs []signature, filters []uint32) {
	n := 0
	for i, opening := range openings {
		s.survivors[n] = uint16(i)
		n += s.keyPairs.has(uint16(opening)) & s.fingerprints.has(uint16(opening>>16))
	}
	left := s.survivors[:n]
	for k, i := range left {
		s.signatures[k] = signs[i]
	}
	for k, i := range left {
		if s.signatures[k].matches(&s.fingerprints) == 1 {
			s.candidates = append(s.candidates, filters[i])
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
			if s.allConjunctsHold(f, fl.conjuncts, asked) {
				f.addFilter(fl)
			}
			asked = asked[len(fl.conjuncts):]
		}
		clear(o.filters)
	}
}

// allConjunctsHold reports whether the conjuncts in some rows, which ask for that, are all true.
func (s *filters) allConjunctsHold(f *matchFrame, rows []uint32, asked []uint64) bool {
	for i, row := range rows {
		p := s.pages.page(row)
		if !p.table.conjunct.holds(f, p, int(row&pageMask), asked[i]) {
			return false
		}
	}
	return true
}
