package condition

import (
	"math"
	"slices"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// A marking is by what a compound is passed that cannot match, but for its guard.
type guardFingerprints struct {
	opening prefilter
	sign    signature
}

// An opening is what most compounds are passed by: the mark of the two rarest of its
// equalities together, on a board of its own, and, in the upper half, that of one more
// conjunct. An event that says each of two things often does not say both.
type prefilter uint32

// newPrefilter makes that of the equalities of a compound, the rarest first, and of all
// its marks, which begin with theirs.
func newPrefilter(keys []uint64, marks []uint16) (o prefilter) {
	next := 0
	// The same key twice is no pair: an event has it once.
	if second := slices.IndexFunc(keys, func(key uint64) bool { return key != keys[0] }); second > 0 {
		o, next = prefilter(fingerprintOf(pairKey(keys[0], keys[second]))), 2
	}
	if next < len(marks) {
		o |= prefilter(marks[next]) << 16
	}
	return o
}

// A sign says what up to eight conjuncts of a compound ask for, in sixteen bits each,
// and 0 for none: a mark. An event sets the marks of what it says on its board; a
// compound with a mark that is not there cannot match, and is passed. What meets is
// tested: two things may have the same mark.
type signature struct{ low, high uint64 }

const signatureSize = 8

func newSignature(marks []uint16) (s signature) {
	for i, mark := range marks {
		if i < signatureSize/2 {
			s.low |= uint64(mark) << (16 * i)
		} else if i < signatureSize {
			s.high |= uint64(mark) << (16*i - 64)
		}
	}
	return s
}

// matches is 1 where the event says all that s asks for, else 0.
func (s signature) matches(b *fingerprintSet) int {
	return b.has(uint16(s.low)) & b.has(uint16(s.low>>16)) & b.has(uint16(s.low>>32)) & b.has(uint16(s.low>>48)) &
		b.has(uint16(s.high)) & b.has(uint16(s.high>>16)) & b.has(uint16(s.high>>32)) & b.has(uint16(s.high>>48))
}

// A signBoard has a bit for each mark. Mark 0 is always said.
type fingerprintSet struct {
	bits   [1 << 16 / 64]uint64
	added  []uint16 // the marks whose bits are set
	isFull bool     // or all of them are
}

// has is 1 where a mark is said, else 0.
func (b *fingerprintSet) has(mark uint16) int { return int(b.bits[mark>>6]>>(mark&63)) & 1 }

func (b *fingerprintSet) add(mark uint16) {
	b.bits[mark>>6] |= 1 << (mark & 63)
	b.added = append(b.added, mark)
}

func (b *fingerprintSet) addAll() {
	for i := range b.bits {
		b.bits[i] = math.MaxUint64
	}
	b.isFull = true
}

// reset takes back what was said, but for mark 0.
func (b *fingerprintSet) reset() {
	if b.isFull {
		clear(b.bits[:])
		b.isFull = false
	}
	for _, mark := range b.added {
		b.bits[mark>>6] = 0
	}
	b.added = append(b.added[:0], 0)
	b.bits[0] = 1
}

// fingerprintOf is the mark of a key.
func fingerprintOf(key uint64) uint16 { return max(1, uint16(key>>40)) }

// quantizedBounds are the numbers from which a range that many compounds share is marked: one
// that begins at x by the last step up to x, one that ends there by the first from x
// on. A step is a double cut to three bits after the first, so that neighbours are an
// eighth apart or less; the steps stay while the term does.
type quantizedBounds []uint16

const maxQuantizedBounds = 64

// quantize orders as the numbers do.
func quantize(x float64) uint16 {
	bits := math.Float64bits(x + 0) // -0 becomes 0
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return uint16(bits >> 49)
}

// add returns the step of a range that ends at x, or begins there; not ok where
// there is none, because there are too many others.
func (s *quantizedBounds) add(x float64, op expr.Comparison) (step uint16, ok bool) {
	step = quantize(x)
	at, found := slices.BinarySearch(*s, step)
	switch {
	case found:
		return step, true
	case len(*s) < maxQuantizedBounds:
		*s = slices.Insert(*s, at, step)
		return step, true
	case op.IsLowerBound():
		at--
	}
	if at < 0 || at == len(*s) {
		return 0, false
	}
	return (*s)[at], true
}

// reached are the steps of the ranges in which x may be.
func (s quantizedBounds) reached(x float64, op expr.Comparison) quantizedBounds {
	step := quantize(x)
	at, found := slices.BinarySearch(s, step)
	if op.IsLowerBound() {
		if found {
			at++
		}
		return s[:at]
	}
	return s[at:]
}
