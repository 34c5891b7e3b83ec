package deliver

import (
	"math/bits"
	"time"
)

// outcomeWindow counts the outcomes of the last 30 seconds.
type outcomeWindow struct {
	slots [windowParts]windowSlot
}

const (
	windowParts   = 6
	windowSeconds = 5 // of one slot
)

type windowSlot struct {
	number    int64 // of the period that the slot counts
	answers   int   // including errors
	errors    int   // lost, or refused for reasons of the relay's own
	durations histogram
}

func (w *outcomeWindow) at(now time.Time) *windowSlot {
	number := now.Unix() / windowSeconds
	p := &w.slots[number%windowParts]
	if p.number != number {
		*p = windowSlot{number: number}
	}
	return p
}

// sum adds up the latest slots.
func (w *outcomeWindow) sum(now time.Time, parts int64) (sum windowSlot) {
	oldest := now.Unix()/windowSeconds - parts + 1
	for i := range w.slots {
		if p := &w.slots[i]; p.number >= oldest {
			sum.answers += p.answers
			sum.errors += p.errors
			sum.durations.add(&p.durations)
		}
	}
	return sum
}

// A histogram counts durations in steps of an eighth of their size.
type histogram struct {
	counts [histogramSteps]uint32
	total  uint32
}

const (
	stepBits       = 3              // eight steps per octave
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

// quantile returns the duration that a share of all durations does not exceed, or 0 if none
// was counted.
func (h *histogram) quantile(share float64) time.Duration {
	rest := int64(share * float64(h.total))
	for i, n := range h.counts {
		if rest -= int64(n); n > 0 && rest <= 0 {
			return stepEnd(i)
		}
	}
	return 0
}

// stepOf returns the step of a duration: one step per unit below eight units; above, the
// highest bit and the three bits after it.
func stepOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> unitBits
	shift := max(bits.Len64(units)-stepBits-1, 0)
	return min(shift<<stepBits+int(units>>shift), histogramSteps-1)
}

// stepEnd returns the longest duration of a step.
func stepEnd(step int) time.Duration {
	shift := max(step>>stepBits-1, 0)
	return time.Duration((step-shift<<stepBits+1)<<shift<<unitBits - 1)
}
