package limit

import "time"

const (
	// breakAfter is the number of failures in a row that open a breaker, if at most half as
	// many messages are active.
	breakAfter = 5
	// The first pause; each further pause is twice as long, up to longestPause.
	firstPause   = 10 * time.Second
	longestPause = 15 * time.Minute
	// relapseWindow is the time after a pause in which a failure continues the series of
	// pauses.
	relapseWindow = 5 * time.Minute
	// pauseJitter spreads the ends of pauses, so that destinations that failed together do not
	// return together.
	pauseJitter = 0.2
)

// A Breaker suspends a destination that fails repeatedly. After some failures in a row it
// opens for a pause. Then one message is sent as a probe, and its result closes the breaker
// or opens it for longer.
type Breaker struct {
	failures  int           // in a row
	pause     time.Duration // the last one after failures
	openFor   time.Duration // length of the current or last pause
	until     time.Time     // end of the pause
	probing   bool          // a probe is active
	open      bool          // opened, and not closed by a success since
	requested bool          // the destination asked for the current pause
	closed    time.Time     // when it was last closed
}

// Open reports whether nothing may be sent, and until when. If the pause is over, the next
// message is the probe.
func (b *Breaker) Open(now time.Time) (until time.Time, open bool) {
	switch {
	case b.until.After(now):
		return b.until, true
	case b.open && b.probing:
		return time.Time{}, true // until there is a result of the probe
	}
	return time.Time{}, false
}

// Begin counts a message that is sent, and reports whether it is the probe.
func (b *Breaker) Begin() (probe bool) {
	b.probing = b.open
	return b.open
}

// ProbeReturned takes back a probe that was not sent or whose result is inconclusive.
func (b *Breaker) ProbeReturned() { b.probing = false }

// Spread returns the part roll of the last pause: the time over which postponed messages
// return.
func (b *Breaker) Spread(roll float64) time.Duration { return time.Duration(float64(b.openFor) * roll) }

// Succeeded counts a result that shows that the destination works. A message that was
// active when a pause was requested does not end the pause.
func (b *Breaker) Succeeded(now time.Time, probe bool) {
	if b.requested && !probe && b.until.After(now) {
		b.failures = 0
		return
	}
	b.Reset(now)
}

// Failed counts a failure while underway other messages are active, and reports whether it
// opened the breaker. roll is a random number from 0 to 1.
func (b *Breaker) Failed(now time.Time, probe bool, underway int, roll float64) bool {
	b.failures++
	if probe {
		b.probing = false
	}
	switch {
	case b.open && !probe: // it was active when the breaker opened
		return false
	case !probe && b.failures < max(breakAfter, 2*underway):
		return false
	}
	if b.pause > 0 && (probe || now.Sub(b.closed) < relapseWindow) {
		b.pause = min(longestPause, 2*b.pause)
	} else {
		b.pause = firstPause
	}
	b.open, b.requested = true, false
	b.openFor = b.pause
	b.until = now.Add(b.pause + time.Duration(float64(b.pause)*pauseJitter*roll))
	return true
}

// Suspend opens the breaker for at least this time, because the destination or a rule asked
// for it.
func (b *Breaker) Suspend(now time.Time, pause time.Duration) {
	if until := now.Add(pause); until.After(b.until) {
		b.until, b.openFor, b.open, b.requested, b.probing = until, pause, true, true, false
	}
}

// Reset closes the breaker for an operator. A failure soon after opens it for longer, as
// after a successful probe.
func (b *Breaker) Reset(now time.Time) {
	if b.open {
		b.closed = now
	}
	b.failures, b.open, b.requested, b.probing, b.until = 0, false, false, false, time.Time{}
}

// Failures returns the number of failures in a row.
func (b *Breaker) Failures() int { return b.failures }

// Tripped reports whether the breaker opened and no success has closed it since.
func (b *Breaker) Tripped() bool { return b.open }
