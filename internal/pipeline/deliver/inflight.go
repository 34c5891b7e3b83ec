package deliver

import (
	"time"
)

// inFlightJobs holds the jobs that were released and not reported yet: their messages may
// be on the wire. Each job knows its index.
type inFlightJobs []*Job

func (w inFlightJobs) has(job *Job) bool { return job.inFlightIndex > 0 }

func (w *inFlightJobs) put(job *Job) {
	*w = append(*w, job)
	job.inFlightIndex = len(*w)
}

// drop removes a job; the last one takes its index.
func (w *inFlightJobs) drop(job *Job) {
	if !w.has(job) {
		return
	}
	all := *w
	last := all[len(all)-1]
	all[job.inFlightIndex-1], last.inFlightIndex = last, job.inFlightIndex
	all[len(all)-1] = nil
	*w, job.inFlightIndex = all[:len(all)-1], 0
}

const (
	// A message is slow if it takes slowFactor times the typical time of the channel, and
	// at least minSlow.
	slowFactor = 8
	minSlow    = 100 * time.Millisecond
	// slowShareDirect is the share of a direct channel's connections that slow destinations
	// may use.
	slowShareDirect = 0.02
	// maxExtraConnections is the maximum number of connections that a direct channel opens
	// in place of those that wait for slow destinations.
	maxExtraConnections = 1000
)

// activeJobs is a linked list of the jobs that connections hold, the oldest first.
type activeJobs struct {
	first, last *Job
	next        *Job // the first one that is not overdue
}

func (f *activeJobs) add(job *Job) {
	if job.older = f.last; f.last == nil {
		f.first = job
	} else {
		f.last.newer = job
	}
	f.last = job
	if f.next == nil {
		f.next = job
	}
}

func (f *activeJobs) remove(job *Job) {
	if f.next == job {
		f.next = job.newer
	}
	if job.older == nil {
		f.first = job.newer
	} else {
		job.older.newer = job.newer
	}
	if job.newer == nil {
		f.last = job.older
	} else {
		job.newer.older = job.older
	}
	job.older, job.newer = nil, nil
}

// slowThreshold returns the time after which a message is slow. Before the first reply
// there is none but the send timeout, since the next hop may always be that slow.
func (l *limits) slowThreshold() time.Duration {
	if l.typicalLatency.Value() == 0 {
		return l.settings.SendTimeout
	}
	return max(minSlow, slowFactor*l.typicalLatency.Value())
}

func (l *limits) tooLong(took time.Duration) bool { return took > l.slowThreshold() }

// markOverdue marks overdue jobs and returns when the next one will be overdue, or zero if
// there is none. Behind a relay no job is marked: no connection is opened in its place.
func (l *limits) markOverdue(now time.Time) (next time.Time) {
	if !l.settings.Direct {
		return time.Time{}
	}
	for job := l.activeByAge.next; job != nil; job = job.newer {
		if at := job.takenAt.Add(l.slowThreshold()); at.After(now) {
			return at
		}
		job.overdue = true
		l.activeByAge.next = job.newer
		if d := job.dest; d != nil {
			d.overdue++
			l.destinations.setSlow(d, true)
		}
	}
	return time.Time{}
}

// allBusy reports whether all configured connections of a direct channel are in use, not
// counting the extra ones.
func (l *limits) allBusy(d *destination) bool {
	return l.settings.Direct && (d == nil || !d.slow) && l.active-l.destinations.slowActive >= l.settings.Connections
}

// connections returns how many connections may be open: the configured ones and, on a
// direct channel, extra ones in place of those that wait for slow destinations.
func (l *limits) connections() int { return l.settings.Connections + l.extraConnections() }

// allowedConnections returns how many of them may be busy, by the adaptive window.
func (l *limits) allowedConnections() int {
	if l.settings.Adapt {
		return min(l.connections(), l.window.Size())
	}
	return l.connections()
}

func (l *limits) extraConnections() int {
	if !l.settings.Direct {
		return 0
	}
	return min(l.destinations.slowActive, maxExtraConnections)
}
