package limit

import "time"

const (
	// breakAfter is how many failures in a row open a breaker, where not more than
	// half as many are under way at once.
	breakAfter = 5
	// firstPause, and each pause after it twice as long, up to longestPause.
	firstPause   = 10 * time.Second
	longestPause = 15 * time.Minute
	// relapse is how long after a pause a failure still belongs to the same trouble.
	relapseWindow = 5 * time.Minute
	// pauseJitter spreads the ends of pauses, so that what failed together does not
	// come back together.
	pauseJitter = 0.2
)

// A Breaker leaves a destination alone that fails again and again. After some
// failures in a row it opens for a pause; when that is over, one message is sent
// as a probe, and its answer closes the breaker, or opens it for longer.
type Breaker struct {
	failures  int           // in a row
	pause     time.Duration // the last after failures
	openFor   time.Duration // of what it is open for, or was
	until     time.Time     // open until then
	probing   bool          // a probe is under way
	open      bool          // opened, and not closed by a success since
	requested bool          // for as long as it is open
	closed    time.Time     // when it was last closed
}

// Open reports until when nothing may be sent, the zero time where a message may
// be. Where the pause is over that message is the probe.
func (b *Breaker) Open(now time.Time) (until time.Time, open bool) {
	switch {
	case b.until.After(now):
		return b.until, true
	case b.open && b.probing:
		return time.Time{}, true // until the probe is answered
	}
	return time.Time{}, false
}

// Begin counts a message that is sent, and reports whether it is the probe.
func (b *Breaker) Begin() (probe bool) {
	b.probing = b.open
	return b.open
}

// ProbeReturned takes a probe back that did not leave, or whose answer says nothing.
func (b *Breaker) ProbeReturned() { b.probing = false }

// Spread is a part, roll, of the last pause: a time over which what waited for it
// to end comes back.
func (b *Breaker) Spread(roll float64) time.Duration { return time.Duration(float64(b.openFor) * roll) }

// Succeeded counts an answer that shows a destination to be well, of the probe or not.
// One that was under way when a pause was asked for does not end that.
func (b *Breaker) Succeeded(now time.Time, probe bool) {
	if b.requested && !probe && b.until.After(now) {
		b.failures = 0
		return
	}
	b.Reset(now)
}

// Failed counts a failure, of the probe or not, with how many others are under
// way, and reports whether the breaker opened by it. roll is a random number
// below one.
func (b *Breaker) Failed(now time.Time, probe bool, underway int, roll float64) bool {
	b.failures++
	if probe {
		b.probing = false
	}
	switch {
	case b.open && !probe: // it was under way when the breaker opened: nothing new
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

// Suspend opens the breaker for so long at least, because the destination asked
// for it, or a rule did.
func (b *Breaker) Suspend(now time.Time, pause time.Duration) {
	if until := now.Add(pause); until.After(b.until) {
		b.until, b.openFor, b.open, b.requested, b.probing = until, pause, true, true, false
	}
}

// Resume ends a pause now: the next message is the probe.
func (b *Breaker) Resume() { b.until, b.probing = time.Time{}, false }

// Reset closes it by somebody's word. A failure soon after opens it for longer than
// the last, as after a probe that worked.
func (b *Breaker) Reset(now time.Time) {
	if b.open {
		b.closed = now
	}
	b.failures, b.open, b.requested, b.probing, b.until = 0, false, false, false, time.Time{}
}

// Failures is how many failures there were in a row.
func (b *Breaker) Failures() int { return b.failures }

// Tripped reports whether it opened and no success has closed it since.
func (b *Breaker) Tripped() bool { return b.open }
