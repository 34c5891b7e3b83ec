package deliver

import (
	"time"
)

// inFlightJobs are the jobs that were released and not reported yet: their messages are on
// the wire. Each knows its place among them.
type inFlightJobs []*Job

// has reports whether a job is on the wire.
func (w inFlightJobs) has(job *Job) bool { return job.inFlightIndex > 0 }

func (w *inFlightJobs) put(job *Job) {
	*w = append(*w, job)
	job.inFlightIndex = len(*w)
}

// drop takes a job off the wire; the last one gets its place.
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
	// slowTimes is how many times longer than most answers of the channel something
	// takes that is called slow, and slowLeast how long it takes at least.
	slowFactor = 8
	minSlow    = 100 * time.Millisecond
	// slowPart of a channel's connections may be busy with slow destinations.
	slowShareDirect = 0.02
	// maxLent is how many connections may be opened in place of those that wait for
	// slow destinations, where each connection goes to one of its own.
	maxExtraConnections = 1000
)

// activeJobs is what is under way, the longest first: a list through the jobs.
type activeJobs struct {
	first, last *Job
	next        *Job // the first that is not overdue
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

// slowThreshold is how long something may take that is not called slow. Before the first
// answer nothing is: that may be how the next hop is.
func (l *limits) slowThreshold() time.Duration {
	if l.typicalLatency.Value() == 0 {
		return l.settings.SendTimeout
	}
	return max(minSlow, slowFactor*l.typicalLatency.Value())
}

func (l *limits) tooLong(took time.Duration) bool { return took > l.slowThreshold() }

// markOverdue marks what is overdue, and returns when the next will be; zero if there
// is none. Behind a relay nothing is while it is under way: no connection is opened
// in its place.
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

// allBusy reports whether all of a channel's connections are in use, beside those
// that were opened in place of others.
func (l *limits) allBusy(d *destination) bool {
	return l.settings.Direct && (d == nil || !d.slow) && l.active-l.destinations.slowActive >= l.settings.Connections
}

// connections is how many may be open: as many as are configured and, where each
// goes to a destination of its own, others in place of those that wait for a
// slow one.
func (l *limits) connections() int { return l.settings.Connections + l.extraConnections() }

// allowedConnections is how many of them the answers allow to be busy.
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
