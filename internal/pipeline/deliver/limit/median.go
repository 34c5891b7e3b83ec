package limit

import "time"

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
