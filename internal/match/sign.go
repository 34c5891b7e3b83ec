package match

import (
	"math"
	"slices"
)

// A sign says what up to eight conjuncts of a compound ask for, in sixteen bits each,
// and 0 for none: a mark. An event sets the marks of what it says on its board; a
// compound with a mark that is not there cannot match, and is passed in two
// nanoseconds. What meets is tested: two things may have the same mark.
type sign struct{ low, high uint64 }

const signParts = 8

func newSign(marks []uint16) (s sign) {
	for i, mark := range marks {
		if i < signParts/2 {
			s.low |= uint64(mark) << (16 * i)
		} else if i < signParts {
			s.high |= uint64(mark) << (16*i - 64)
		}
	}
	return s
}

// first is the mark that is looked at first; an event says 0 always.
func (s sign) first() uint16 { return uint16(s.low) }

// meets reports whether the event says all that s asks for.
func (s sign) meets(b *signBoard) bool {
	for marks := s.low; marks != 0; marks >>= 16 {
		if !b.has(uint16(marks)) {
			return false
		}
	}
	for marks := s.high; marks != 0; marks >>= 16 {
		if !b.has(uint16(marks)) {
			return false
		}
	}
	return true
}

// A signBoard has a bit for each mark.
type signBoard [1 << 16 / 64]uint64

func (b *signBoard) has(mark uint16) bool { return b[mark>>6]&(1<<(mark&63)) != 0 }

// say sets a mark, and remembers to take it away.
func (f *frame) say(mark uint16) {
	f.board[mark>>6] |= 1 << (mark & 63)
	f.marked = append(f.marked, mark)
}

// clearBoard takes all marks away.
func (f *frame) clearBoard() {
	for _, mark := range f.marked {
		f.board[mark>>6] = 0
	}
	f.marked = f.marked[:0]
}

// markOf is the mark of a key.
func markOf(key uint64) uint16 { return max(1, uint16(key>>40)) }

// steps are the numbers from which a range that many compounds share is marked: one
// that begins at x by the last step up to x, one that ends there by the first from x
// on. A step is a double cut to three bits after the first, so that neighbours are an
// eighth apart or less; the steps stay while the term does.
type steps []uint16

const maxSteps = 64

// stepOf orders as the numbers do.
func stepOf(x float64) uint16 {
	bits := math.Float64bits(x + 0) // -0 becomes 0
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return uint16(bits >> 49)
}

// take returns the step of a range that ends at x, or begins there; not ok where
// there is none, because there are too many others.
func (s *steps) take(x float64, op relation) (step uint16, ok bool) {
	step = stepOf(x)
	at, found := slices.BinarySearch(*s, step)
	switch {
	case found:
		return step, true
	case len(*s) < maxSteps:
		*s = slices.Insert(*s, at, step)
		return step, true
	case op.isLower():
		at--
	}
	if at < 0 || at == len(*s) {
		return 0, false
	}
	return (*s)[at], true
}

// met are the steps of the ranges in which x may be.
func (s steps) met(x float64, op relation) steps {
	step := stepOf(x)
	at, found := slices.BinarySearch(s, step)
	if op.isLower() {
		if found {
			at++
		}
		return s[:at]
	}
	return s[at:]
}
