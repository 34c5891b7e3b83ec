package deliver

import (
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A destination is slow if it takes much longer than others. It then gets only a share of
// the connections.
//
// On a direct channel, the duration of a message is that of its destination. Behind a relay it
// may be that of the relay: a relay that stalls briefly delays all messages that it has.
// Therefore, a message counts as late for its destination only if the relay was fast with many
// later messages to others in the meantime. Messages to the same destination and those of other
// relays do not count. The only destination of a channel is therefore never slow.

const (
	// minSlowRelayed is the minimum duration of a late message behind a relay.
	minSlowRelayed = 500 * time.Millisecond
	// overtakenFactor is the number of messages per connection that must have overtaken a
	// late one.
	overtakenFactor = 4
	// lateInARow late messages in a row make a destination slow that was fast before. One
	// is enough for an unknown destination.
	lateInARow = 3
	// slowShareRelayed is the share of the connections to relays that slow destinations may
	// use while others need connections; idleShareForSlow is their share of idle
	// connections.
	slowShareRelayed = 0.05
	idleShareForSlow = 0.5
	// maxSlowQueue is the number of slow destinations that may have a message waiting for
	// that share while others need it: each of them retains its whole batch in memory.
	maxSlowQueue = 8
)

// fastCounts counts messages that did not take long, of a relay and to a destination.
type fastCounts struct{ relay, destination int64 }

// fastCountsOf returns the counts of a job's relay and destination.
func fastCountsOf(job *Job) (q fastCounts) {
	q.relay = job.relay.fast
	if job.dest != nil {
		q.destination = job.dest.fast
	}
	return q
}

// isSlow learns from the duration of a message and reports whether its destination is slow.
func (l *limits) isSlow(job *Job, outcome *driver.Outcome, took time.Duration) bool {
	d := job.dest
	if l.settings.Direct {
		return d.overdue > 0 || l.tooLong(d.latency.Value())
	}
	switch {
	case outcome.Verdict == driver.Lost: // there was no reply
	case took <= max(minSlowRelayed, l.slowThreshold()):
		job.relay.fast++
		d.fast, d.lateInRow = d.fast+1, 0
	case job.overtaken >= int64(overtakenFactor*l.settings.Connections):
		d.lateInRow++
	}
	return d.lateInRow >= lateInARow || d.lateInRow > 0 && d.fast == 0
}

// ignoresSlow reports whether a job is exempt from the share of slow destinations: behind a
// relay, an urgent one would wait for less urgent ones that use it.
func (l *limits) ignoresSlow(job *Job) bool {
	return !l.settings.Direct && job.batch.Lane == fanfare.Urgent
}

// unproven reports whether a destination behind a relay has an active message and was never
// fast: until then, one message at a time is enough to find out. It is false for a group,
// which may have many destinations.
func (l *limits) unproven(d *destination, job *Job) bool {
	return !l.settings.Direct && d.fast == 0 && d.active > 0 && !job.grouped && !l.groupable(job)
}

// slowShareUsed reports whether a destination is slow and the share of slow destinations is
// in use.
func (l *limits) slowShareUsed(d *destination) bool {
	return d.slow && l.destinations.slowActive >= l.slowShare()
}

// slowShare returns how many jobs of slow destinations may be active.
func (l *limits) slowShare() int {
	all := float64(l.settings.Connections)
	if l.settings.Direct {
		return max(1, int(slowShareDirect*all)) + maxExtraConnections
	}
	others := l.active - l.destinations.slowActive
	return max(1, int(slowShareRelayed*all), int(idleShareForSlow*all)-others)
}

// throttledFull reports whether no further jobs may be throttled for a slow destination.
func (l *limits) throttledFull(d *destination, lane fanfare.Lane) bool {
	others := l.active - l.destinations.slowActive
	if !l.settings.Direct && others > int(idleShareForSlow*float64(l.settings.Connections)) {
		return d.throttled.len() > 0 || len(l.throttled.slowQueue) >= maxSlowQueue
	}
	return d.throttled.len() >= maxSlowThrottled || l.throttled.waiting[lane] >= maxThrottled/2
}

// spacing estimates the time between two messages to a destination. Slow destinations
// behind a relay take turns.
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
