package condition

import (
	"slices"
)

// A conjunctionScratch is the working memory of a search for conjunctions.
type conjunctionScratch struct {
	fingerprints fingerprintSet // of the values of the event
	keyPairs     fingerprintSet // fingerprints of the pairs of keys of the event, for prefilters
	pairsAdded   bool           // keyPairs is set for this event
	keys         []uint64       // guard keys of the event, everyEventKey first
	listedKeys   []uint64       // those whose lists have pairs
	eventValues  []eventValue   // by conjunct shape

	survivors  [scanBlock]uint16    // indexes in a block that the prefilters did not exclude
	signatures [scanBlock]signature // and their signatures

	candidates []uint32  // conjunctions to test
	filters    []*filter // a block of them
	rows       []uint32  // of all their conjuncts
	rowValues  []uint64  // of these rows
}

// scanBlock is the number of conjunctions in a list that are scanned at a time.
const scanBlock = 1024

// begin discards the last event.
func (s *conjunctionScratch) begin() {
	s.fingerprints.reset()
	s.keyPairs.reset()
	s.pairsAdded = false
	s.keys = append(s.keys[:0], everyEventKey)
	s.eventValues, s.candidates = s.eventValues[:0], s.candidates[:0]
}

// maxPaired is the highest number of keys of an event whose pairs are added. The pairs of more keys
// would fill the set.
const maxPaired = 64

// addKeyPairs adds the fingerprints of all pairs of the event's keys.
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

// scanList appends the conjunctions to the candidates whose prefilters and signatures match the
// event. It has no branch on prefilters, which the processor could not predict. A separate loop
// loads the signatures of the survivors, which are far apart, so that the loads overlap.
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

// testBlock is the number of candidates that are tested at a time.
const testBlock = 256

// testCandidates adds the candidates whose conjuncts are all true. Their values are far apart in
// memory, behind five pointers. Each step follows one pointer for all candidates of a block, so
// that the loads overlap.
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

// allConjunctsHold reports whether the conjuncts in rows are all true. asked are the values of the
// rows.
func (s *filters) allConjunctsHold(f *matchFrame, rows []uint32, asked []uint64) bool {
	for i, row := range rows {
		p := s.pages.page(row)
		if !p.table.conjunct.holds(f, p, int(row&pageMask), asked[i]) {
			return false
		}
	}
	return true
}
