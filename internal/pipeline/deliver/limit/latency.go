package limit

import (
	"time"
)

// A Median estimates the median of durations without storing them: each one moves the
// estimate by a step ("frugal streaming", Ma, Muthukrishnan and Sandler 2013). The step is
// a share of the estimate, so that it works for milliseconds and for minutes. The error is
// at most a twentieth for a constant median.
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

// Value returns the median, or 0 before the first duration.
func (m *Median) Value() time.Duration { return time.Duration(m.value) }

const (
	// A peer is overloaded if a reply takes overloadFactor times the minimum, and at least
	// minOverload.
	overloadFactor = 4
	minOverload    = 20 * time.Millisecond
	// minimumGrowth is the growth of the minimum per round, so that a peer that became
	// permanently slower does not count as overloaded forever.
	minimumGrowth = 1.005
)

// A LatencyDetector detects from the duration of replies that a peer has more active
// messages than it works on: from that point, more messages at once make each reply slower.
type LatencyDetector struct {
	recent  Median
	minimum time.Duration
	round   int
}

// Answered counts the duration of a reply; size is the number of messages that may be
// active. Once a round it reports whether the peer is overloaded.
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
