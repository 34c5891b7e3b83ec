// Package clock defines the time source of the server, which tests replace by a clock that
// they set. Code that measures a duration may call package time directly.
package clock

import "time"

// Clock returns the time that decisions are based on.
type Clock interface {
	Now() time.Time
}

// System is the clock of the machine, in UTC.
type System struct{}

// Now returns the current time in UTC. It has no monotonic reading.
func (System) Now() time.Time { return stepped(time.Now()).UTC() }
