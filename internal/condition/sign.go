package condition

import (
	"math"
	"slices"
)

// A sign says what up to eight conjuncts of a compound ask for, in sixteen bits each,
// and 0 for none: a mark. An event sets the marks of what it says on its board; a
// compound with a mark that is not there cannot match, and is passed. What meets is
// tested: two things may have the same mark.
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

// meets is 1 where the event says all that s asks for, else 0.
func (s sign) meets(b *signBoard) int {
	return b.has(uint16(s.low)) & b.has(uint16(s.low>>16)) & b.has(uint16(s.low>>32)) & b.has(uint16(s.low>>48)) &
		b.has(uint16(s.high)) & b.has(uint16(s.high>>16)) & b.has(uint16(s.high>>32)) & b.has(uint16(s.high>>48))
}

// A signBoard has a bit for each mark. Mark 0 is always said.
type signBoard struct {
	bits [1 << 16 / 64]uint64
	said []uint16 // the marks whose bits are set
	all  bool     // or all of them are
}

// has is 1 where a mark is said, else 0.
func (b *signBoard) has(mark uint16) int { return int(b.bits[mark>>6]>>(mark&63)) & 1 }

func (b *signBoard) say(mark uint16) {
	b.bits[mark>>6] |= 1 << (mark & 63)
	b.said = append(b.said, mark)
}

func (b *signBoard) sayAll() {
	for i := range b.bits {
		b.bits[i] = math.MaxUint64
	}
	b.all = true
}

// clear takes back what was said, but for mark 0.
func (b *signBoard) clear() {
	if b.all {
		clear(b.bits[:])
		b.all = false
	}
	for _, mark := range b.said {
		b.bits[mark>>6] = 0
	}
	b.said = append(b.said[:0], 0)
	b.bits[0] = 1
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
