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
	Group(most int) int
	// Take spends n messages that leave together, or says how long they may not. It
	// takes less than n where no more is left for hours.
	Take(now time.Time, n int, urgent bool) (taken int, wait time.Duration)
	// Back returns n that were spent at a time and did not leave.
	Back(spent time.Time, n int)
	// Even reports that a message counts when it leaves: none is taken ahead.
	Even() bool
}

// limits say which job may leave, and when. They are guarded by the outlet.
type limits struct {
	settings     *Settings
	rate         limit.Rate   // the channel's, as configured
	found        limit.Found  // the channel's, as its refusals tell; with adapt
	window       limit.Window // of what is under way; with adapt
	strain       limit.Strain // of the next hop; with adapt
	typical      limit.Median // time of an answer
	closedUntil  time.Time    // by a budget
	reopened     bool         // since one got something back; not told yet
	underway     int          // jobs that connections have
	groupsBegun  uint64       // which have begun to leave
	flight       flight       // those, by how long they take
	blocked      bool         // connections wait for an answer to others
	destinations destinations
	aside        aside
}

// permit is what limits say of a job.
type permit uint8

const (
	leaves permit = iota // and counts as under way from now on
	paced                // nothing leaves the channel for a while
	full                 // nothing leaves the channel before an answer has come
	apart                // this job waits for its destination, others may leave
	away                 // this job is put off until a time, others may leave
)

// configure puts settings in force.
func (l *limits) configure(s *Settings, now time.Time) {
	if l.settings == nil || !s.Adapt || l.window.Size() == 0 {
		l.found, l.strain, l.window = limit.Found{}, limit.Strain{}, limit.NewWindow(s.Connections, s.Connections)
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

// pause is how long n messages may not leave the channel together.
func (l *limits) pause(n int, urgent bool, now time.Time) time.Duration {
	return max(l.rate.WaitFor(n, urgent, now), l.found.WaitFor(n, urgent, now), l.closedUntil.Sub(now))
}

// group is how many messages may leave together, where most may leave the channel.
func (l *limits) group(most int) int {
	most = min(l.rate.Group(most), l.found.Group(most))
	for _, budget := range l.settings.Budgets {
		most = min(most, budget.Group(most))
	}
	return most
}

// admit says whether a job may leave now, and of what has to wait for reasons of its
// own until when. n is how many
// leave together with it, itself included: they are counted with it, and those behind
// it, whose leader it is, are not counted again. ahead says that its connection is busy
// with another one: where a rate is to be kept, a message counts from when it
// leaves, and so none is taken before that.
func (l *limits) admit(job, leader *Job, n int, ahead bool, now time.Time) (says permit, until time.Time) {
	d := l.destinationOf(job, now)
	urgent := job.batch.Lane == fanfare.Urgent
	if !job.along && (!l.room(job.batch.Lane) || l.busy(d)) {
		l.blocked = true
		return full, time.Time{}
	}
	counted := leader != nil && leader.reserved > 0
	if !counted {
		if l.pause(n, urgent, now) > 0 || ahead && (l.even() || d.limited()) {
			return paced, time.Time{}
		}
	}
	if says, until := l.toward(d, job, leader, now); says != leaves {
		return says, until
	}
	if counted {
		leader.reserved--
	} else {
		taken, wait := l.spend(n, urgent, now)
		if taken == 0 {
			if n == 1 || wait > longestGroup {
				l.closedUntil = now.Add(wait)
				return paced, time.Time{}
			}
			return paced, now.Add(wait)
		}
		l.rate.TakeFor(taken, now)
		l.found.TakeFor(taken, now)
		job.reserved = taken - 1
	}
	job.spent = l.settings.Budgets
	l.begin(d, job, leader, now)
	return leaves, time.Time{}
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
				spent.Back(now, n-got)
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
		l.giveBack(job, job.reserved)
		job.reserved = 0
	}
}

// giveBack takes back that n messages leave which were counted with a job.
func (l *limits) giveBack(job *Job, n int) {
	l.rate.BackFor(n)
	l.found.BackFor(n)
	if len(job.spent) > 0 && !l.closedUntil.IsZero() {
		l.closedUntil, l.reopened = time.Time{}, true
	}
	for _, budget := range job.spent {
		budget.Back(job.taken, n)
	}
}

// destinationOf is to whom a job goes. One that has waited for somebody stays with
// him, also where another is asked for by now.
func (l *limits) destinationOf(job *Job, now time.Time) *destination {
	if job.turn {
		return job.to
	}
	return l.destinations.of(job.Destination, now)
}

// even reports whether a rate of the channel is to be kept.
func (l *limits) even() bool {
	return l.rate.Limited() || l.found.Limited() || slices.ContainsFunc(l.settings.Budgets, Budget.Even)
}

// room reports whether the answers allow one more of a lane to be under way, beside
// what is kept for more urgent ones.
func (l *limits) room(lane fanfare.Lane) bool {
	kept := l.atOnce() - l.settings.Reserve.most(lane, l.atOnce())
	return !l.settings.Adapt || l.window.Room(l.underway+kept)
}

// toward is what the destination of a job has to say. Those of a group that go to one
// destination are one message to it, except for its rate.
func (l *limits) toward(d *destination, job, leader *Job, now time.Time) (says permit, until time.Time) {
	if d == nil {
		return leaves, time.Time{}
	}
	if until, open := d.breaker.Open(now); open {
		if until.IsZero() { // a probe is under way
			until = now.Add(time.Second)
		}
		return away, until.Add(d.breaker.Spread(rand.Float64()))
	}
	wait := d.wait(now)
	if job.allowed {
		wait = 0
	}
	passes := l.passes(job)
	switch {
	case l.gathers(d, job): // it leaves in a group of those that wait
		return l.behind(d, job, wait, now)
	case wait == 0 && leader != nil && d.groups[leader.group] > 0 && !d.slow:
		return leaves, time.Time{}
	}
	if wait == 0 && d.window.Room(d.underway) && (passes || !l.crowded(d) && !l.untold(d, job)) && (passes || job.turn || d.aside.len() == 0) {
		return leaves, time.Time{}
	}
	return l.behind(d, job, wait, now)
}

// gathers reports whether a job has to wait for others of its group at a destination
// that has a rate.
func (l *limits) gathers(d *destination, job *Job) bool {
	return l.groups(job) && d.limited() && !job.turn && !job.allowed && !l.passes(job)
}

// groups reports whether a job may leave together with others.
func (l *limits) groups(job *Job) bool {
	return l.settings.Multicast > 1 && job.Message.SharedContent != 0
}

// begin counts a job as under way.
func (l *limits) begin(d *destination, job, leader *Job, now time.Time) {
	job.taken, job.underway, job.to = now, true, d
	if leader == nil {
		l.groupsBegun++
		job.group = l.groupsBegun
	} else {
		job.group = leader.group
	}
	l.flight.enter(job)
	if !job.along {
		l.underway++
		l.room(job.batch.Lane) // the last place counts as used: connections may not ask for another
	}
	if d != nil {
		if !job.allowed {
			d.take(1, now)
			job.allowed = true
		}
		job.probe = d.breaker.Begin()
		if job.rides = leader != nil && d.groups[job.group] > 0; !job.rides {
			l.destinations.count(d, 1)
		}
		if l.groups(job) {
			if d.groups == nil {
				d.groups = map[uint64]int{}
			}
			d.groups[job.group]++
		}
	}
}

// end counts a job as not under way any more; false if it was not.
func (l *limits) end(job *Job) bool {
	if !job.underway {
		return false
	}
	job.underway = false
	if !job.along {
		l.underway--
	}
	l.flight.leave(job)
	if d := job.to; d != nil {
		if !job.rides {
			l.destinations.count(d, -1)
		}
		if n := d.groups[job.group]; n > 1 {
			d.groups[job.group] = n - 1
		} else {
			delete(d.groups, job.group)
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
	l.giveBack(job, 1+job.reserved)
	job.reserved = 0
	if d := job.to; d != nil {
		d.rate.Back()
		d.found.Back()
		job.allowed = false
		if job.probe {
			d.breaker.Unsent()
		}
	}
}

// answered learns from an answer, and reports whether more may be under way than
// before.
func (l *limits) answered(job *Job, outcome *driver.Outcome, advice Advice, took time.Duration, now time.Time) (wider bool) {
	if !l.end(job) {
		return false
	}
	taken, throttled := outcome.Verdict == driver.Accepted, outcome.Class == fanfare.ClassThrottled
	if taken && !job.along {
		l.typical.Add(took)
	}
	if l.settings.Adapt {
		if !job.along {
			wider = l.window.Answered(taken || !troubled(outcome, true), l.underway)
		}
		if taken && !job.along && l.strain.Answered(took, l.window.Size()) {
			l.window.Narrow()
		}
		if taken || throttled {
			l.found.Answered(throttled, now)
		}
	}
	if d := job.to; d != nil {
		bad := troubled(outcome, l.settings.Direct)
		if bad && job.echo && !job.probe && d.heard.Equal(outcome.At) {
			d.refused++ // it has been told
		} else {
			d.learn(outcome, bad, job.probe, advice, now)
		}
		d.latency.Add(took)
		l.destinations.judge(d, l.isSlow(job, outcome, took))
		l.destinations.note(d)
	}
	return wider
}

// troubled reports whether an answer says that who gave it wants less. direct says
// that it was who is at the other end of the connection.
func troubled(outcome *driver.Outcome, direct bool) bool {
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
