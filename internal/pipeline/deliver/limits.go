package deliver

import (
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// A Budget is a limit that several senders share, such as the rate of a service or a daily
// quota. It is safe for concurrent use.
type Budget interface {
	// GroupSize returns the number of messages of the next group that may be sent together, at
	// most the given number.
	GroupSize(most int) int
	// Take counts n messages that are sent together, or returns how long to wait. It takes
	// fewer than n if no more are left for hours.
	Take(now time.Time, n int, urgent bool) (taken int, wait time.Duration)
	// Refund takes back n messages that were counted at a time and not sent.
	Refund(spent time.Time, n int)
	// CountsAtSend reports whether a message must be counted when it is sent, so that no
	// connection may take one in advance.
	CountsAtSend() bool
}

// limits decide which job may be sent, and when. The sender's lock guards them.
type limits struct {
	settings       *Settings
	rate           limit.Rate            // of the channel, from the settings
	learned        limit.LearnedRate     // of the channel, from its refusals; with Adapt
	window         limit.Window          // of active messages; with Adapt
	latency        limit.LatencyDetector // of the next hop; with Adapt
	typicalLatency limit.Median          // from taking a message to its reply
	closedUntil    time.Time             // by a budget
	reopened       bool                  // a budget got a refund since; not announced yet
	active         int                   // jobs that connections hold
	groupsBegun    uint64                // number of the last group
	activeByAge    activeJobs            // the active jobs
	blocked        bool                  // connections wait for a reply to others
	destinations   destinations
	throttled      throttledJobs
}

// admission is the decision of the limits about a job.
type admission uint8

const (
	admitted     admission = iota // counted as active from now on
	waitForRate                   // no message of the channel may be sent for a while
	waitForReply                  // no message of the channel may be sent before a reply has arrived
	throttled                     // this job waits for its destination; others may be sent
	postponeJob                   // this job is postponed; others may be sent
)

// configure applies new settings.
func (l *limits) configure(s *Settings, now time.Time) {
	if l.settings == nil || !s.Adapt || l.window.Size() == 0 {
		l.learned, l.latency, l.window = limit.LearnedRate{}, limit.LatencyDetector{}, limit.NewWindow(s.Connections, s.Connections)
	}
	l.settings = s
	l.rate.Set(float64(s.Rate), now)
	l.window.Bound(s.Connections)
	l.closedUntil = time.Time{}
	first := s.Connections
	if s.Direct {
		first = firstWindow
	}
	l.destinations.configure(&s.Destinations, first, now)
}

// rateWait returns how long the channel may not send n messages together.
func (l *limits) rateWait(n int, urgent bool, now time.Time) time.Duration {
	return max(l.rate.WaitFor(n, urgent, now), l.learned.WaitFor(n, urgent, now), l.closedUntil.Sub(now))
}

// groupSize returns how many messages may be sent together, at most most.
func (l *limits) groupSize(most int) int {
	most = min(l.rate.GroupSize(most), l.learned.GroupSize(most))
	for _, budget := range l.settings.Budgets {
		most = min(most, budget.GroupSize(most))
	}
	return most
}

// admit decides whether a job may be sent now, and until when to postpone it if it may not.
// n is the size of its group with the job itself: the whole group is counted with its first
// job, the leader, and not again with the others. prefetch means that the connection is busy
// with another message: under a rate, a message counts when it is sent, so none is taken in
// advance.
func (l *limits) admit(job, leader *Job, n int, prefetch bool, now time.Time) (result admission, until time.Time) {
	d := l.destinationOf(job, now)
	urgent := job.batch.Lane == fanfare.Urgent
	if !job.grouped && (!l.hasCapacity(job.batch.Lane) || l.allBusy(d)) {
		l.blocked = true
		return waitForReply, time.Time{}
	}
	counted := leader != nil && leader.reserved > 0
	if !counted {
		if l.rateWait(n, urgent, now) > 0 || prefetch && (l.countsAtSend() || d.limited()) {
			return waitForRate, time.Time{}
		}
	}
	if result, until := l.admitTo(d, job, leader, now); result != admitted {
		return result, until
	}
	if counted {
		leader.reserved--
	} else {
		taken, wait := l.spend(n, urgent, now)
		if taken == 0 {
			if n == 1 || wait > longestGroup {
				l.closedUntil = now.Add(wait)
				return waitForRate, time.Time{}
			}
			return waitForRate, now.Add(wait)
		}
		l.rate.TakeFor(taken, now)
		l.learned.TakeFor(taken, now)
		job.reserved = taken - 1
	}
	job.budgets = l.settings.Budgets
	l.begin(d, job, leader, now)
	return admitted, time.Time{}
}

// longestGroup is how long a group waits at most for a rate. A longer wait lasts until the
// next day of a quota.
const longestGroup = time.Minute

// spend takes n messages from all budgets, or as many as all of them have.
func (l *limits) spend(n int, urgent bool, now time.Time) (taken int, wait time.Duration) {
	for i, budget := range l.settings.Budgets {
		got, wait := budget.Take(now, n, urgent)
		if got < n {
			for _, spent := range l.settings.Budgets[:i] {
				spent.Refund(now, n-got)
			}
		}
		if n = got; n == 0 {
			return 0, wait
		}
	}
	return n, 0
}

// unreserve refunds what was counted for others of a group that are not sent with the job.
func (l *limits) unreserve(job *Job) {
	if job.reserved > 0 {
		l.refund(job, job.reserved)
		job.reserved = 0
	}
}

// refund takes back n messages that were counted with a job.
func (l *limits) refund(job *Job, n int) {
	l.rate.RefundFor(n)
	l.learned.RefundFor(n)
	if len(job.budgets) > 0 && !l.closedUntil.IsZero() {
		l.closedUntil, l.reopened = time.Time{}, true
	}
	for _, budget := range job.budgets {
		budget.Refund(job.takenAt, n)
	}
}

// destinationOf returns the destination of a job. A readmitted job keeps the one that it
// waited for, even if Site has changed since.
func (l *limits) destinationOf(job *Job, now time.Time) *destination {
	if job.readmitted {
		return job.dest
	}
	return l.destinations.of(job.Destination, now)
}

// countsAtSend reports whether the channel has a rate.
func (l *limits) countsAtSend() bool {
	return l.rate.Limited() || l.learned.Limited() || slices.ContainsFunc(l.settings.Budgets, Budget.CountsAtSend)
}

// hasCapacity reports whether the adaptive window has capacity for a job of a lane, in addition
// to the reserve of more urgent lanes.
func (l *limits) hasCapacity(lane fanfare.Lane) bool {
	reserved := l.allowedConnections() - l.settings.Reserve.laneLimit(lane, l.allowedConnections())
	return !l.settings.Adapt || l.window.HasCapacity(l.active+reserved)
}

// admitTo decides for the destination of a job. The messages of a group to one destination
// count as one active message, but each of them counts in its rate.
func (l *limits) admitTo(d *destination, job, leader *Job, now time.Time) (result admission, until time.Time) {
	if d == nil {
		return admitted, time.Time{}
	}
	if until, open := d.breaker.Open(now); open {
		if until.IsZero() { // a probe is active
			until = now.Add(time.Second)
		}
		return postponeJob, until.Add(d.breaker.Spread(rand.Float64()))
	}
	wait := d.wait(now)
	if job.destinationCounted {
		wait = 0
	}
	passes := l.ignoresSlow(job)
	switch {
	case l.waitsForGroup(d, job): // it is sent in a group of throttled jobs
		return l.throttle(d, job, wait, now)
	case wait == 0 && leader != nil && d.groups[leader.groupID] > 0 && !d.slow:
		return admitted, time.Time{}
	}
	if wait == 0 && d.window.HasCapacity(d.active) && (passes || !l.slowShareUsed(d) && !l.unproven(d, job)) && (passes || job.readmitted || d.throttled.len() == 0) {
		return admitted, time.Time{}
	}
	return l.throttle(d, job, wait, now)
}

// waitsForGroup reports whether a job must wait for others of its group at a destination
// with a rate.
func (l *limits) waitsForGroup(d *destination, job *Job) bool {
	return l.groupable(job) && d.limited() && !job.readmitted && !job.destinationCounted && !l.ignoresSlow(job)
}

// groupable reports whether a job may be sent together with others.
func (l *limits) groupable(job *Job) bool {
	return l.settings.Multicast > 1 && job.Message.SharedContent != 0
}

// begin counts a job as active.
func (l *limits) begin(d *destination, job, leader *Job, now time.Time) {
	job.takenAt, job.active, job.dest = now, true, d
	if leader == nil {
		l.groupsBegun++
		job.groupID = l.groupsBegun
	} else {
		job.groupID = leader.groupID
	}
	l.activeByAge.add(job)
	if !job.grouped {
		l.active++
		l.hasCapacity(job.batch.Lane) // notes that the window is fully used, if it is
	}
	if d != nil {
		if !job.destinationCounted {
			d.take(1, now)
			job.destinationCounted = true
		}
		job.probe = d.breaker.Begin()
		if job.sharesSlot = leader != nil && d.groups[job.groupID] > 0; !job.sharesSlot {
			l.destinations.countActive(d, 1)
		}
		if l.groupable(job) {
			if d.groups == nil {
				d.groups = map[uint64]int{}
			}
			d.groups[job.groupID]++
		}
	}
}

// end counts a job as no longer active; false if it was not active.
func (l *limits) end(job *Job) bool {
	if !job.active {
		return false
	}
	job.active = false
	if !job.grouped {
		l.active--
	}
	l.activeByAge.remove(job)
	if d := job.dest; d != nil {
		if !job.sharesSlot {
			l.destinations.countActive(d, -1)
		}
		if n := d.groups[job.groupID]; n > 1 {
			d.groups[job.groupID] = n - 1
		} else {
			delete(d.groups, job.groupID)
		}
		if job.overdue {
			d.overdue--
		}
	}
	job.overdue = false
	return true
}

// unsent takes back what was counted for a job that is not sent now.
func (l *limits) unsent(job *Job) {
	if !l.end(job) {
		return
	}
	l.refund(job, 1+job.reserved)
	job.reserved = 0
	if d := job.dest; d != nil {
		d.rate.Refund()
		d.learned.Refund()
		job.destinationCounted = false
		if job.probe {
			d.breaker.ProbeReturned()
		}
	}
}

// learn updates the limits with an outcome and reports whether more messages may be active
// than before.
func (l *limits) learn(job *Job, outcome *driver.Outcome, advice Advice, took time.Duration, now time.Time) (wider bool) {
	if !l.end(job) {
		return false
	}
	taken, throttled := outcome.Verdict == driver.Accepted, outcome.Class == fanfare.ClassThrottled
	if taken && !job.grouped {
		l.typicalLatency.Add(took)
	}
	if l.settings.Adapt {
		if !job.grouped {
			wider = l.window.Answered(taken || !asksForLess(outcome, true), l.active)
		}
		if taken && !job.grouped && l.latency.Answered(took, l.window.Size()) {
			l.window.Shrink()
		}
		if taken || throttled {
			l.learned.Answered(throttled, now)
		}
	}
	if d := job.dest; d != nil {
		bad := asksForLess(outcome, l.settings.Direct)
		if bad && job.sameReply && !job.probe && d.lastReplyAt.Equal(outcome.At) {
			d.refused++ // its window has already counted this reply
		} else {
			d.learn(outcome, bad, job.probe, advice, now)
		}
		d.latency.Add(took)
		l.destinations.setSlow(d, l.isSlow(job, outcome, took))
		l.destinations.updateHealth(d)
	}
	return wider
}

// asksForLess reports whether the replying server asks for fewer messages. direct means
// that the destination itself replied.
func asksForLess(outcome *driver.Outcome, direct bool) bool {
	switch outcome.Class {
	case fanfare.ClassThrottled, fanfare.ClassBusy:
		return true
	case fanfare.ClassNetwork:
		return direct
	case fanfare.ClassBlocked:
		return outcome.Verdict != driver.Permanent // it concerns only this message
	}
	return direct && outcome.Verdict == driver.Lost
}
