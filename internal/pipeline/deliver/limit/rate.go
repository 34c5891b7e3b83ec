package limit

import (
	"math"
	"slices"
	"time"
)

const (
	// margin is the share by which a Rate stays below its limit. It compensates slack, and
	// messages that arrive closer together than they were sent: a provider that counts over
	// a sliding second would refuse those.
	margin = 0.01
	// slack is how late a message may be sent without delaying the next one, as a share of
	// a second (of the interval, if that is longer). Timers fire late; without slack each
	// such delay would reduce the rate.
	slack = 0.005
)

// A Rate spaces messages evenly, and never allows more than its limit in any second,
// wherever that second begins. It is the generic cell rate algorithm (ITU-T I.371) with a
// burst of a two hundredth of a second: n+1 messages at a rate of n take at least n*1.01/n
// s - 0.005 s. The zero Rate is unlimited.
//
// A group of messages is sent as soon as the rate has allowed all of them. While a group
// waits, the rate saves for it. Only urgent messages do not wait until a second has passed
// since a group: within that second they exceed the rate by their own number, and the next
// group is sent later accordingly.
type Rate struct {
	interval   time.Duration // between two messages; 0: unlimited
	slack      time.Duration
	perSecond  int       // messages in any one second
	next       time.Time // when the next message is due
	saved      time.Time // when the first message of the next group was due, not after next
	groupUntil time.Time // until when a group is expected to wait
	departures int       // how many times messages were sent

	groups  []departure // of the last second, the earliest first
	counted int         // messages that were sent
}

// A departure is a group that was sent.
type departure struct {
	at          time.Time
	countBefore int // messages that were sent before it
}

// groupSpan is the time for which the messages of a group count as those of one second,
// with a margin for messages that arrive closer together than they were sent.
const groupSpan = time.Second + 5*time.Millisecond

// unlimited is the rate per second from which on there is no limit: messages would be less
// than a nanosecond apart. (Inf of golang.org/x/time/rate is the largest float, not +Inf.)
const unlimited = 1e9

// Set changes the rate immediately. At unlimited or more, and below zero, there is no limit; 0
// allows no message.
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

// never is the interval of rate 0.
const never = 100 * 365 * 24 * time.Hour

// Limited reports whether there is a limit.
func (r *Rate) Limited() bool { return r.interval > 0 }

// Interval returns the time between two messages, or 0 if the rate is unlimited.
func (r *Rate) Interval() time.Duration { return r.interval }

// GroupSize returns the size of the next group, at most most: the messages of a second
// are divided evenly into as few groups as possible.
func (r *Rate) GroupSize(most int) int {
	if r.interval == 0 || most <= 1 {
		return most
	}
	groups := (r.perSecond + most - 1) / most
	n := r.departures % groups
	return max(1, (n+1)*r.perSecond/groups-n*r.perSecond/groups)
}

// Wait returns how long no message may be sent.
func (r *Rate) Wait(now time.Time) time.Duration { return r.WaitFor(1, false, now) }

// WaitFor returns how long n messages may not be sent together. It assumes that a group that
// must wait asks again.
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

// groupWait returns how long n further messages would exceed the limit within a second from
// an earlier group.
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

// forget drops groups that were sent more than a second ago.
func (r *Rate) forget(now time.Time) {
	gone := 0
	for gone < len(r.groups) && now.Sub(r.groups[gone].at) >= groupSpan {
		gone++
	}
	r.groups = slices.Delete(r.groups, 0, gone)
}

// Take counts a message that is sent now.
func (r *Rate) Take(now time.Time) { r.TakeFor(1, now) }

// TakeFor counts n messages that are sent together now.
func (r *Rate) TakeFor(n int, now time.Time) {
	if r.interval == 0 {
		return
	}
	if n > 1 {
		if earliest := now.Add(-time.Duration(n-1) * r.interval); r.saved.Before(earliest) {
			r.saved = earliest // the rate saves for one group at most
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

// Refund takes back a message that was counted and not sent.
func (r *Rate) Refund() { r.RefundFor(1) }

// RefundFor takes back n messages that were counted.
func (r *Rate) RefundFor(n int) {
	r.next = r.next.Add(-time.Duration(n) * r.interval)
	r.saved = r.saved.Add(-time.Duration(n) * r.interval)
	r.counted -= n
}
