package limit

import (
	"time"
)

// A Median follows the median of durations without keeping them: each one pulls
// it a step up or down ("frugal streaming", Ma, Muthukrishnan and Sandler 2013),
// here by a share of itself, so that it is as quick at milliseconds as at
// minutes. It is within a twentieth of the median where that does not move.
type Median struct{ value float64 }

const medianStep = 0.05

// Add counts a duration.
func (m *Median) Add(d time.Duration) {
	v := max(1, float64(d))
	switch {
	case m.value == 0:
		m.value = v
	case v > m.value:
		m.value *= 1 + medianStep
	case v < m.value:
		m.value /= 1 + medianStep
	}
}

// Value returns the median, 0 before the first duration.
func (m *Median) Value() time.Duration { return time.Duration(m.value) }

const (
	// strained is how many times its least an answer takes when a peer has more
	// under way than it can work on, and strainLeast how long it takes at least
	// before that means anything.
	overloadFactor = 4
	minOverload    = 20 * time.Millisecond
	// ageing is how much the least grows with each round, so that a peer which is
	// slower for good is not called strained for ever.
	minimumGrowth = 1.005
)

// A Strain tells by the time of answers that a peer has more under way than it
// works on: from there on, more at once makes each answer later and none more.
type LatencyDetector struct {
	recent  Median
	minimum time.Duration
	round   int
}

// Answered counts how long an answer took while so many may be under way, and
// reports, once a round, whether the peer is strained.
func (s *LatencyDetector) Answered(took time.Duration, size int) bool {
	s.recent.Add(took)
	if s.round++; s.round < max(size, 20) {
		return false
	}
	s.round = 0
	recent := s.recent.Value()
	if s.minimum == 0 || recent < s.minimum {
		s.minimum = recent
	} else {
		s.minimum = time.Duration(float64(s.minimum) * minimumGrowth)
	}
	return recent > max(overloadFactor*s.minimum, minOverload)
}
