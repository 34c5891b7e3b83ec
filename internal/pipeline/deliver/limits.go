package deliver

import (
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// A Budget is what several outlets spend together: the rate of a service, or the
// messages of a day. It is safe for concurrent use.
type Budget interface {
	// Group returns the size of the next group, where most messages may leave together.
	GroupSize(most int) int
	// Take spends n messages that leave together, or says how long they may not. It
	// takes less than n where no more is left for hours.
	Take(now time.Time, n int, urgent bool) (taken int, wait time.Duration)
	// Back returns n that were spent at a time and did not leave.
	Refund(spent time.Time, n int)
	// Even reports that a message counts when it leaves: none is taken ahead.
	CountsAtSend() bool
}

// limits say which job may leave, and when. They are guarded by the outlet.
type limits struct {
	settings       *Settings
	rate           limit.Rate            // the channel's, as configured
	learned        limit.LearnedRate     // the channel's, as its refusals tell; with adapt
	window         limit.Window          // of what is under way; with adapt
	latency        limit.LatencyDetector // of the next hop; with adapt
	typicalLatency limit.Median          // time of an answer
	closedUntil    time.Time             // by a budget
	reopened       bool                  // since one got something back; not told yet
	active         int                   // jobs that connections have
	groupsBegun    uint64                // which have begun to leave
	activeByAge    activeJobs            // those, by how long they take
	blocked        bool                  // connections wait for an answer to others
	destinations   destinations
	throttled      throttledJobs
}

// admission is what limits say of a job.
type admission uint8

const (
	admitted     admission = iota // and counts as under way from now on
	waitForRate                   // nothing leaves the channel for a while
	waitForReply                  // nothing leaves the channel before an answer has come
	throttled                     // this job waits for its destination, others may leave
	postponeJob                   // this job is put off until a time, others may leave
)

// configure puts settings in force.
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

// rateWait is how long n messages may not leave the channel together.
func (l *limits) rateWait(n int, urgent bool, now time.Time) time.Duration {
	return max(l.rate.WaitFor(n, urgent, now), l.learned.WaitFor(n, urgent, now), l.closedUntil.Sub(now))
}

// groupSize is how many messages may leave together, where most may leave the channel.
func (l *limits) groupSize(most int) int {
	most = min(l.rate.GroupSize(most), l.learned.GroupSize(most))
	for _, budget := range l.settings.Budgets {
		most = min(most, budget.GroupSize(most))
	}
	return most
}

// admit says whether a job may leave now, and of what has to wait for reasons of its
// own until when. n is how many
// leave together with it, itself included: they are counted with it, and those behind
// it, whose leader it is, are not counted again. ahead says that its connection is busy
// with another one: where a rate is to be kept, a message counts from when it
// leaves, and so none is taken before that.
func (l *limits) admit(job, leader *Job, n int, ahead bool, now time.Time) (says admission, until time.Time) {
	d := l.destinationOf(job, now)
	urgent := job.batch.Lane == fanfare.Urgent
	if !job.grouped && (!l.hasRoom(job.batch.Lane) || l.allBusy(d)) {
		l.blocked = true
		return waitForReply, time.Time{}
	}
	counted := leader != nil && leader.reserved > 0
	if !counted {
		if l.rateWait(n, urgent, now) > 0 || ahead && (l.countsAtSend() || d.limited()) {
			return waitForRate, time.Time{}
		}
	}
	if says, until := l.admitTo(d, job, leader, now); says != admitted {
		return says, until
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

// longestGroup is for how long a group waits at most that a rate of seconds allows; what
// has to wait for longer than that waits for another day.
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

// unreserve gives back what was counted for others of a group that do not leave with
// it.
func (l *limits) unreserve(job *Job) {
	if job.reserved > 0 {
		l.refund(job, job.reserved)
		job.reserved = 0
	}
}

// refund takes back that n messages leave which were counted with a job.
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

// destinationOf is to whom a job goes. One that has waited for somebody stays with
// him, also where another is asked for by now.
func (l *limits) destinationOf(job *Job, now time.Time) *destination {
	if job.readmitted {
		return job.dest
	}
	return l.destinations.of(job.Destination, now)
}

// countsAtSend reports whether a rate of the channel is to be kept.
func (l *limits) countsAtSend() bool {
	return l.rate.Limited() || l.learned.Limited() || slices.ContainsFunc(l.settings.Budgets, Budget.CountsAtSend)
}

// hasRoom reports whether the answers allow one more of a lane to be under way, beside
// what is kept for more urgent ones.
func (l *limits) hasRoom(lane fanfare.Lane) bool {
	kept := l.allowedConnections() - l.settings.Reserve.laneLimit(lane, l.allowedConnections())
	return !l.settings.Adapt || l.window.Room(l.active+kept)
}

// admitTo is what the destination of a job has to say. Those of a group that go to one
// destination are one message to it, except for its rate.
func (l *limits) admitTo(d *destination, job, leader *Job, now time.Time) (says admission, until time.Time) {
	if d == nil {
		return admitted, time.Time{}
	}
	if until, open := d.breaker.Open(now); open {
		if until.IsZero() { // a probe is under way
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
	case l.waitsForGroup(d, job): // it leaves in a group of those that wait
		return l.throttle(d, job, wait, now)
	case wait == 0 && leader != nil && d.groups[leader.groupID] > 0 && !d.slow:
		return admitted, time.Time{}
	}
	if wait == 0 && d.window.Room(d.active) && (passes || !l.slowShareUsed(d) && !l.unproven(d, job)) && (passes || job.readmitted || d.throttled.len() == 0) {
		return admitted, time.Time{}
	}
	return l.throttle(d, job, wait, now)
}

// waitsForGroup reports whether a job has to wait for others of its group at a destination
// that has a rate.
func (l *limits) waitsForGroup(d *destination, job *Job) bool {
	return l.groupable(job) && d.limited() && !job.readmitted && !job.destinationCounted && !l.ignoresSlow(job)
}

// groupable reports whether a job may leave together with others.
func (l *limits) groupable(job *Job) bool {
	return l.settings.Multicast > 1 && job.Message.SharedContent != 0
}

// begin counts a job as under way.
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
		l.hasRoom(job.batch.Lane) // the last place counts as used: connections may not ask for another
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

// end counts a job as not under way any more; false if it was not.
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

// unsent takes back what was counted for a job that does not leave now.
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

// learn learns from an answer, and reports whether more may be under way than
// before.
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
			d.refused++ // it has been told
		} else {
			d.learn(outcome, bad, job.probe, advice, now)
		}
		d.latency.Add(took)
		l.destinations.setSlow(d, l.isSlow(job, outcome, took))
		l.destinations.updateHealth(d)
	}
	return wider
}

// asksForLess reports whether an answer says that who gave it wants less. direct says
// that it was who is at the other end of the connection.
func asksForLess(outcome *driver.Outcome, direct bool) bool {
	switch outcome.Class {
	case fanfare.ClassThrottled, fanfare.ClassBusy:
		return true
	case fanfare.ClassNetwork:
		return direct
	case fanfare.ClassBlocked:
		return outcome.Verdict != driver.Permanent // which is about the one message
	}
	return direct && outcome.Verdict == driver.Lost
}
