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
	slowLeastRelayed = 500 * time.Millisecond
	// overtakenTimes is how many messages each connection must have brought to others
	// while one was under way, so that it is late for its destination's sake.
	overtakenTimes = 4
	// lateInARow is how many have to be until a destination is slow that was quick
	// before. Of a stranger one is enough.
	lateInARow = 3
	// slowPartRelayed of the connections to relays may be busy with slow destinations
	// while others have need of them, and idleForSlow of those that are idle.
	slowPartRelayed = 0.05
	idleForSlow     = 0.5
	// slowLine is how many slow destinations may have a message wait for that share while
	// others have need of it: each holds its whole batch in memory.
	slowLine = 8
)

// quick counts messages that did not take long, of a relay and to a destination.
type quick struct{ relay, destination int64 }

// quickSoFar are those of a job's relay and destination.
func quickSoFar(job *Job) (q quick) {
	q.relay = job.by.quick
	if job.to != nil {
		q.destination = job.to.quick
	}
	return q
}

// isSlow learns from how long a message took, and says whether its destination is slow.
func (l *limits) isSlow(job *Job, outcome *driver.Outcome, took time.Duration) bool {
	d := job.to
	if l.settings.Direct {
		return d.overdue > 0 || l.tooLong(d.latency.Value())
	}
	switch {
	case outcome.Verdict == driver.Lost: // nobody answered
	case took <= max(slowLeastRelayed, l.patience()):
		job.by.quick++
		d.quick, d.late = d.quick+1, 0
	case job.overtaken >= int64(overtakenTimes*l.settings.Connections):
		d.late++
	}
	return d.late >= lateInARow || d.late > 0 && d.quick == 0
}

// passes reports whether a job takes no notice of who is slow: behind a relay an
// urgent one would wait for the less urgent ones that have the share.
func (l *limits) passes(job *Job) bool {
	return !l.settings.Direct && job.batch.Lane == fanfare.Urgent
}

// untold reports whether a destination behind a relay has a message, and never had one
// quickly: until it had, one at a time tells enough. It is not asked about a group, which
// may be for many destinations.
func (l *limits) untold(d *destination, job *Job) bool {
	return !l.settings.Direct && d.quick == 0 && d.underway > 0 && !job.along && !l.groups(job)
}

// crowded reports whether a destination is slow, and the share of the slow ones is
// in use.
func (l *limits) crowded(d *destination) bool {
	return d.slow && l.destinations.slow >= l.slowShare()
}

// slowShare is how many jobs may be under way to slow destinations.
func (l *limits) slowShare() int {
	all := float64(l.settings.Connections)
	if l.settings.Direct {
		return max(1, int(slowPart*all)) + maxLent
	}
	others := l.underway - l.destinations.slow
	return max(1, int(slowPartRelayed*all), int(idleForSlow*all)-others)
}

// enoughAside reports whether no more jobs may wait aside for a slow destination.
func (l *limits) enoughAside(d *destination, lane fanfare.Lane) bool {
	others := l.underway - l.destinations.slow
	if !l.settings.Direct && others > int(idleForSlow*float64(l.settings.Connections)) {
		return d.aside.len() > 0 || len(l.aside.slow) >= slowLine
	}
	return d.aside.len() >= slowAside || l.aside.waiting[lane] >= maxAside/2
}

// spacing is about how long after one message to a destination the next one leaves.
// Slow ones behind a relay take turns at their share.
func (l *limits) spacing(d *destination) time.Duration {
	spacing := d.spacing()
	switch {
	case !d.slow:
		return spacing
	case l.settings.Direct:
		return max(spacing, l.patience()/time.Duration(d.window.Size()))
	}
	return max(spacing, max(d.latency.Value(), l.patience())*time.Duration(l.destinations.slowOnes)/time.Duration(l.slowShare()))
}
