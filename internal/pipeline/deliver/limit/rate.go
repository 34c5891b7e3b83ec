package limit

import (
	"math"
	"slices"
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
//
// A group of messages that leave together leaves as soon as the rate has allowed all
// of them. While a group waits, what the rate allows is saved for it. Urgent messages
// alone do not wait until a second has passed since a group: within that second they
// exceed the rate by their own number, and the next group leaves so much later.
type Rate struct {
	interval   time.Duration // between two messages; 0: unlimited
	slack      time.Duration
	perSecond  int       // messages in any one second
	next       time.Time // when the next message is due
	saved      time.Time // when the first message of the next group was due, which is not after next
	groupUntil time.Time // until when a group is expected to wait
	departures int       // how many times messages have left

	groups  []departure // of the last second, the earliest first
	counted int         // messages that have left
}

// A departure is a group that has left.
type departure struct {
	at          time.Time
	countBefore int // messages that had left
}

// groupSpan is for how long the messages of a group count as those of one second: it
// includes what they may arrive closer together than they left.
const groupSpan = time.Second + 5*time.Millisecond

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
	r.perSecond = max(1, int(math.Ceil(perSecond-1e-6)))
	if latest := now.Add(r.interval); r.next.After(latest) {
		r.next = latest
	}
	if r.saved.After(r.next) {
		r.saved = r.next
	}
}

// never stands for the interval of a rate of nothing.
const never = 100 * 365 * 24 * time.Hour

// Limited reports whether there is a rate at all.
func (r *Rate) Limited() bool { return r.interval > 0 }

// Interval is the time between two messages, 0 where the rate is unlimited.
func (r *Rate) Interval() time.Duration { return r.interval }

// GroupSize returns the size of the next group, where most messages may leave together:
// groups divide what may leave in one second evenly, and are as few as that allows.
func (r *Rate) GroupSize(most int) int {
	if r.interval == 0 || most <= 1 {
		return most
	}
	groups := (r.perSecond + most - 1) / most
	n := r.departures % groups
	return max(1, (n+1)*r.perSecond/groups-n*r.perSecond/groups)
}

// Wait is how long no message may leave.
func (r *Rate) Wait(now time.Time) time.Duration { return r.WaitFor(1, false, now) }

// WaitFor is how long n messages may not leave together. Whoever is told to wait with
// a group is expected to come back for it.
func (r *Rate) WaitFor(n int, urgent bool, now time.Time) (wait time.Duration) {
	if r.interval == 0 {
		return 0
	}
	wait = r.next.Add(-r.slack).Sub(now)
	if n > 1 {
		wait = max(wait, r.saved.Add(time.Duration(n-1)*r.interval-r.slack).Sub(now))
	}
	if !urgent {
		wait = max(wait, r.groupWait(n, now))
	}
	if n > 1 && wait > 0 {
		r.groupUntil = now.Add(wait + lateness)
	}
	return max(0, wait)
}

// groupWait is how long n messages would be too many within a second from a group on.
func (r *Rate) groupWait(n int, now time.Time) (wait time.Duration) {
	r.forget(now)
	for _, group := range r.groups {
		if r.counted-group.countBefore+n <= r.perSecond {
			break
		}
		wait = group.at.Add(groupSpan).Sub(now)
	}
	return wait
}

// forget leaves out groups that left more than a second ago.
func (r *Rate) forget(now time.Time) {
	gone := 0
	for gone < len(r.groups) && now.Sub(r.groups[gone].at) >= groupSpan {
		gone++
	}
	r.groups = slices.Delete(r.groups, 0, gone)
}

// Take counts a message that leaves now.
func (r *Rate) Take(now time.Time) { r.TakeFor(1, now) }

// TakeFor counts n messages that leave together now.
func (r *Rate) TakeFor(n int, now time.Time) {
	if r.interval == 0 {
		return
	}
	if n > 1 {
		if earliest := now.Add(-time.Duration(n-1) * r.interval); r.saved.Before(earliest) {
			r.saved = earliest // more than a group is not saved
		}
		r.forget(now)
		r.groups = append(r.groups, departure{now, r.counted})
	} else if now.After(r.groupUntil) && r.saved.Before(now) {
		r.saved = now // no group waits for it
	}
	if r.next.Before(now) {
		r.next = now
	}
	r.next = r.next.Add(r.interval)
	r.saved = r.saved.Add(time.Duration(n) * r.interval)
	if r.next.Before(r.saved) {
		r.next = r.saved
	}
	r.counted += n
	r.departures++
}

// Refund gives back a message that was counted and did not leave.
func (r *Rate) Refund() { r.RefundFor(1) }

// RefundFor gives back n messages of those that were counted.
func (r *Rate) RefundFor(n int) {
	r.next = r.next.Add(-time.Duration(n) * r.interval)
	r.saved = r.saved.Add(-time.Duration(n) * r.interval)
	r.counted -= n
}
