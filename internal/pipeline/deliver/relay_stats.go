package deliver

import (
	"math/bits"
	"time"
)

// A window remembers what came of the messages of the last half minute.
type window struct {
	parts [windowParts]windowPart
}

const (
	windowParts   = 6
	windowSeconds = 5 // of one part
)

type windowPart struct {
	number  int64 // of the stretch of time that it is about
	answers int   // among them the wrong ones
	wrong   int   // lost, or refused for reasons of the relay's own
	took    histogram
}

func (w *window) at(now time.Time) *windowPart {
	number := now.Unix() / windowSeconds
	p := &w.parts[number%windowParts]
	if p.number != number {
		*p = windowPart{number: number}
	}
	return p
}

// sum is what came of the messages in the latest parts of the window.
func (w *window) sum(now time.Time, parts int64) (s windowPart) {
	oldest := now.Unix()/windowSeconds - parts + 1
	for i := range w.parts {
		if p := &w.parts[i]; p.number >= oldest {
			s.answers += p.answers
			s.wrong += p.wrong
			s.took.add(&p.took)
		}
	}
	return s
}

// A histogram counts durations by their size, each to an eighth.
type histogram struct {
	counts [histogramSteps]uint32
	total  uint32
}

const (
	stepBits       = 3              // an octave has eight steps
	histogramSteps = 34 << stepBits // up to two hours, in units of 128 ns
	unitBits       = 7
)

func (h *histogram) count(d time.Duration) {
	h.counts[stepOf(d)]++
	h.total++
}

func (h *histogram) add(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the duration that a share of all does not exceed, 0 where
// nothing was counted.
func (h *histogram) quantile(share float64) time.Duration {
	rest := int64(share * float64(h.total))
	for i, n := range h.counts {
		if rest -= int64(n); n > 0 && rest <= 0 {
			return stepEnd(i)
		}
	}
	return 0
}

// stepOf: below eight units each has a step of its own; above, a step is told by
// the highest bit and the three that follow it.
func stepOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> unitBits
	shift := max(bits.Len64(units)-stepBits-1, 0)
	return min(shift<<stepBits+int(units>>shift), histogramSteps-1)
}

// stepEnd is the longest duration of a step.
func stepEnd(step int) time.Duration {
	shift := max(step>>stepBits-1, 0)
	return time.Duration((step-shift<<stepBits+1)<<shift<<unitBits - 1)
}
