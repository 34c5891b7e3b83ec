package condition

import (
	"math"
	"slices"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// guardFingerprints exclude conjunctions that cannot match, beyond their guard.
type guardFingerprints struct {
	opening prefilter
	sign    signature
}

// A prefilter excludes most conjunctions. The lower half is the fingerprint of a pair: its two
// rarest equalities outside of the guard. The upper half is that of one more conjunct. An event
// that has each of two values often does not have both.
type prefilter uint32

// newPrefilter creates a prefilter from the keys of a conjunction, the rarest first, and its
// fingerprints, which begin with those of the keys.
func newPrefilter(keys []uint64, marks []uint16) (o prefilter) {
	next := 0
	// The same key twice is no pair, because an event has it once.
	if second := slices.IndexFunc(keys, func(key uint64) bool { return key != keys[0] }); second > 0 {
		o, next = prefilter(fingerprintOf(pairKey(keys[0], keys[second]))), 2
	}
	if next < len(marks) {
		o |= prefilter(marks[next]) << 16
	}
	return o
}

// A signature holds the fingerprints of up to eight conjuncts of a conjunction, 16 bits each, and 0
// for none. An event collects the fingerprints of its values in a set. A conjunction with a
// fingerprint that is not in the set cannot match. Two values may have the same fingerprint, so the
// others are evaluated.
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

// matches is 1 if the set has all fingerprints of s, else 0.
func (s signature) matches(b *fingerprintSet) int {
	return b.has(uint16(s.low)) & b.has(uint16(s.low>>16)) & b.has(uint16(s.low>>32)) & b.has(uint16(s.low>>48)) &
		b.has(uint16(s.high)) & b.has(uint16(s.high>>16)) & b.has(uint16(s.high>>32)) & b.has(uint16(s.high>>48))
}

// A fingerprintSet has a bit for each fingerprint. It always contains 0.
type fingerprintSet struct {
	bits   [1 << 16 / 64]uint64
	added  []uint16 // fingerprints whose bits are set
	isFull bool     // all bits are set
}

// has is 1 if the set has a fingerprint, else 0.
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

// reset removes all fingerprints but 0.
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

// fingerprintOf returns the fingerprint of a key.
func fingerprintOf(key uint64) uint16 { return max(1, uint16(key>>40)) }

// quantizedBounds are the bounds whose fingerprints stand for the bounds of ranges: a lower bound x
// is represented by the last one up to x, an upper bound by the first one from x on. A quantized
// bound is a double cut to its first four bits, so that neighbours differ by an eighth or less. The
// list only grows while the shape exists.
type quantizedBounds []uint16

const maxQuantizedBounds = 64

// quantize keeps the order of numbers.
func quantize(x float64) uint16 {
	bits := math.Float64bits(x + 0) // -0 becomes 0
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return uint16(bits >> 49)
}

// add returns the quantized bound that represents a bound x; not ok if there is none because the
// list is full.
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

// reached returns the quantized bounds that a value x satisfies.
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
