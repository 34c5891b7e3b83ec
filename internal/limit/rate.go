package limit

import (
	"math"
	"time"
)

const (
	// margin is how much less than its rate a Rate lets pass. It pays for slack,
	// and the rest of it for messages that arrive a little closer together than
	// they left: a provider that counts over a sliding second refuses those.
	margin = 0.01
	// slack is how late a message may leave without the next one waiting for it, as
	// a share of a second (of the interval, where that is longer). Timers wake late;
	// without slack each such delay would be lost for good.
	slack = 0.005
)

// A Rate lets messages leave evenly, and never more of them than its rate in any
// one second, wherever that second begins: it is the generic cell rate algorithm
// (ITU-T I.371) with a burst of a two hundredth of a second. n+1 messages at a
// rate of n take at least n*1.01/n s - 0.005 s. The zero Rate is unlimited.
type Rate struct {
	interval time.Duration // between two messages; 0: unlimited
	slack    time.Duration
	next     time.Time // when the next is due
}

// unlimited is from which rate on, per second, none is kept: messages would be
// less than a nanosecond apart. (The Inf of golang.org/x/time/rate is the largest
// float, and not +Inf.)
const unlimited = 1e9

// Set changes the rate, of which unlimited and more, and anything below zero, are
// none; 0 lets nothing pass. It is in force at once.
func (r *Rate) Set(perSecond float64, now time.Time) {
	switch {
	case perSecond >= unlimited || perSecond < 0:
		*r = Rate{}
		return
	case perSecond < 1/never.Seconds():
		r.interval = never
	default:
		r.interval = time.Duration(math.Ceil((1 + margin) / perSecond * 1e9))
	}
	r.slack = time.Duration(slack * float64(max(time.Second, r.interval)))
	if latest := now.Add(r.interval); r.next.After(latest) {
		r.next = latest
	}
}

// never stands for the interval of a rate of nothing.
const never = 100 * 365 * 24 * time.Hour

// Limited reports whether there is a rate at all.
func (r *Rate) Limited() bool { return r.interval > 0 }

// Interval is the time between two messages, 0 where the rate is unlimited.
func (r *Rate) Interval() time.Duration { return r.interval }

// Wait is how long nothing may leave.
func (r *Rate) Wait(now time.Time) time.Duration {
	if r.interval == 0 {
		return 0
	}
	return max(0, r.next.Add(-r.slack).Sub(now))
}

// Take counts a message that leaves now.
func (r *Rate) Take(now time.Time) {
	if r.interval == 0 {
		return
	}
	if r.next.Before(now) {
		r.next = now
	}
	r.next = r.next.Add(r.interval)
}

// Back gives back a message that was counted and did not leave.
func (r *Rate) Back() { r.next = r.next.Add(-r.interval) }
