package deliver

import (
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A destination is slow that takes much longer than others, and gets a share of the
// connections only.
//
// Where connections go to destinations themselves, each one's time is its own. Behind
// a relay it may be the relay's: one that stands still for a moment is late with all
// that it has. So a message is late for its destination's sake only where the relay was
// quick with many others meanwhile, which were behind it and overtook it. Those to the
// same destination do not count, nor do those of another relay: the only destination
// of a channel is never slow.

const (
	// slowLeastRelayed is what a message takes at least that a relay is late with.
	minSlowRelayed = 500 * time.Millisecond
	// overtakenTimes is how many messages each connection must have brought to others
	// while one was under way, so that it is late for its destination's sake.
	overtakenFactor = 4
	// lateInARow is how many have to be until a destination is slow that was quick
	// before. Of a stranger one is enough.
	lateInARow = 3
	// slowPartRelayed of the connections to relays may be busy with slow destinations
	// while others have need of them, and idleForSlow of those that are idle.
	slowShareRelayed = 0.05
	idleShareForSlow = 0.5
	// slowLine is how many slow destinations may have a message wait for that share while
	// others have need of it: each holds its whole batch in memory.
	maxSlowQueue = 8
)

// fastCounts counts messages that did not take long, of a relay and to a destination.
type fastCounts struct{ relay, destination int64 }

// fastCountsOf are those of a job's relay and destination.
func fastCountsOf(job *Job) (q fastCounts) {
	q.relay = job.relay.fast
	if job.dest != nil {
		q.destination = job.dest.fast
	}
	return q
}

// isSlow learns from how long a message took, and says whether its destination is slow.
func (l *limits) isSlow(job *Job, outcome *driver.Outcome, took time.Duration) bool {
	d := job.dest
	if l.settings.Direct {
		return d.overdue > 0 || l.tooLong(d.latency.Value())
	}
	switch {
	case outcome.Verdict == driver.Lost: // nobody answered
	case took <= max(minSlowRelayed, l.slowThreshold()):
		job.relay.fast++
		d.fast, d.lateInRow = d.fast+1, 0
	case job.overtaken >= int64(overtakenFactor*l.settings.Connections):
		d.lateInRow++
	}
	return d.lateInRow >= lateInARow || d.lateInRow > 0 && d.fast == 0
}

// ignoresSlow reports whether a job takes no notice of who is slow: behind a relay an
// urgent one would wait for the less urgent ones that have the share.
func (l *limits) ignoresSlow(job *Job) bool {
	return !l.settings.Direct && job.batch.Lane == fanfare.Urgent
}

// unproven reports whether a destination behind a relay has a message, and never had one
// quickly: until it had, one at a time tells enough. It is not asked about a group, which
// may be for many destinations.
func (l *limits) unproven(d *destination, job *Job) bool {
	return !l.settings.Direct && d.fast == 0 && d.active > 0 && !job.grouped && !l.groupable(job)
}

// slowShareUsed reports whether a destination is slow, and the share of the slow ones is
// in use.
func (l *limits) slowShareUsed(d *destination) bool {
	return d.slow && l.destinations.slowActive >= l.slowShare()
}

// slowShare is how many jobs may be under way to slow destinations.
func (l *limits) slowShare() int {
	all := float64(l.settings.Connections)
	if l.settings.Direct {
		return max(1, int(slowShareDirect*all)) + maxExtraConnections
	}
	others := l.active - l.destinations.slowActive
	return max(1, int(slowShareRelayed*all), int(idleShareForSlow*all)-others)
}

// throttledFull reports whether no more jobs may wait aside for a slow destination.
func (l *limits) throttledFull(d *destination, lane fanfare.Lane) bool {
	others := l.active - l.destinations.slowActive
	if !l.settings.Direct && others > int(idleShareForSlow*float64(l.settings.Connections)) {
		return d.throttled.len() > 0 || len(l.throttled.slowQueue) >= maxSlowQueue
	}
	return d.throttled.len() >= maxSlowThrottled || l.throttled.waiting[lane] >= maxThrottled/2
}

// spacing is about how long after one message to a destination the next one leaves.
// Slow ones behind a relay take turns at their share.
func (l *limits) spacing(d *destination) time.Duration {
	spacing := d.spacing()
	switch {
	case !d.slow:
		return spacing
	case l.settings.Direct:
		return max(spacing, l.slowThreshold()/time.Duration(d.window.Size()))
	}
	return max(spacing, max(d.latency.Value(), l.slowThreshold())*time.Duration(l.destinations.slowCount)/time.Duration(l.slowShare()))
}
