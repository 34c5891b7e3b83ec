// Package kit holds what every stage needs and what knows nothing of the
// domain: the clock, and the named steps at which a test may end the process.
package kit

import "time"

// Clock tells the time. Logic that decides by time takes one, so that tests
// set it; plain measuring of durations may use package time.
type Clock interface {
	Now() time.Time
}

// System is the clock of the machine, in UTC.
type System struct{}

// Now returns the current time in UTC.
func (System) Now() time.Time { return time.Now().UTC() }
