package condition

import "slices"

// A marking is by what a compound is passed that cannot match, but for its guard.
type marking struct {
	opening opening
	sign    sign
}

// An opening is what most compounds are passed by: the mark of the two rarest of its
// equalities together, on a board of its own, and, in the upper half, that of one more
// conjunct. An event that says each of two things often does not say both.
type opening uint32

// newOpening makes that of the equalities of a compound, the rarest first, and of all
// its marks, which begin with theirs.
func newOpening(keys []uint64, marks []uint16) (o opening) {
	next := 0
	// The same key twice is no pair: an event has it once.
	if second := slices.IndexFunc(keys, func(key uint64) bool { return key != keys[0] }); second > 0 {
		o, next = opening(markOf(pairKey(keys[0], keys[second]))), 2
	}
	if next < len(marks) {
		o |= opening(marks[next]) << 16
	}
	return o
}

// A lookout is the working space in which the compounds of an event are found.
type lookout struct {
	says    signBoard // what the event says
	both    signBoard // which two of its keys it has: for openings
	paired  bool      // both is of this event
	keys    []uint64  // of guards that it meets, everyEvent first
	long    []uint64  // those of them that are in pairs
	answers []answer  // by term

	left  [atOnce]uint16 // what the openings have left of a part of a list
	signs [atOnce]sign   // and its signs

	candidates []uint32  // compounds to be tested
	filters    []*filter // some of them
	rows       []uint32  // all their parts
	asked      []uint64  // and what these ask for
}

// atOnce is how many compounds of a list are looked at in one go.
const atOnce = 1024

// begin forgets the last event.
func (o *lookout) begin() {
	o.says.clear()
	o.both.clear()
	o.paired = false
	o.keys = append(o.keys[:0], everyEvent)
	o.answers, o.candidates = o.answers[:0], o.candidates[:0]
}

// maxPaired is how many keys an event has at most of which each two are said: of more,
// the board would be full of them.
const maxPaired = 64

// pair says which two keys the event has.
func (o *lookout) pair() {
	if o.paired {
		return
	}
	o.paired = true
	keys := o.keys[1:]
	if len(keys) > maxPaired {
		o.both.sayAll()
		return
	}
	for i, a := range keys {
		for _, b := range keys[:i] {
			o.both.say(markOf(pairKey(a, b)))
		}
	}
}

// scan makes those of a part of a list candidates whose openings and signs the event
// meets. No branch hangs on what a compound asks for: of the few in a hundred that are
// left each would be guessed wrong. Their signs, which are far from each other, are
// fetched by a loop that does nothing else, so that they are on their way together.
func (o *lookout) scan(openings []opening, signs []sign, filters []uint32) {
	n := 0
	for i, opening := range openings {
		o.left[n] = uint16(i)
		n += o.both.has(uint16(opening)) & o.says.has(uint16(opening>>16))
	}
	left := o.left[:n]
	for k, i := range left {
		o.signs[k] = signs[i]
	}
	for k, i := range left {
		if o.signs[k].meets(&o.says) == 1 {
			o.candidates = append(o.candidates, filters[i])
		}
	}
}

// testedAtOnce is how many candidates are tested in one go.
const testedAtOnce = 256

// takeCandidates keeps the candidates all of whose conjuncts are true. What they ask for lies
// anywhere in memory, five steps away; each step is made for all of them before the
// next, so that it is waited for once.
func (s *filters) takeCandidates(f *frame) {
	o := f.lookout
	for some := range slices.Chunk(o.candidates, testedAtOnce) {
		o.filters, o.rows, o.asked = o.filters[:0], o.rows[:0], o.asked[:0]
		for _, number := range some {
			o.filters = append(o.filters, s.list[number])
		}
		for _, fl := range o.filters {
			o.rows = append(o.rows, fl.parts...)
		}
		for _, row := range o.rows {
			p := s.rows.page(row)
			o.asked = append(o.asked, p.rule.term.asks(p, int(row&pageMask)))
		}
		asked := o.asked
		for _, fl := range o.filters {
			if s.meets(f, fl.parts, asked) {
				f.take(fl)
			}
			asked = asked[len(fl.parts):]
		}
		clear(o.filters)
	}
}

// meets reports whether the conjuncts in some rows, which ask for that, are all true.
func (s *filters) meets(f *frame, rows []uint32, asked []uint64) bool {
	for i, row := range rows {
		p := s.rows.page(row)
		if !p.rule.term.meets(f, p, int(row&pageMask), asked[i]) {
			return false
		}
	}
	return true
}
