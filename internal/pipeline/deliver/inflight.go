package deliver

import (
	"time"
)

// wired are the jobs that were released and not reported yet: their messages are on
// the wire. Each knows its place among them.
type wired []*Job

// has reports whether a job is on the wire.
func (w wired) has(job *Job) bool { return job.wired > 0 }

func (w *wired) put(job *Job) {
	*w = append(*w, job)
	job.wired = len(*w)
}

// drop takes a job off the wire; the last one gets its place.
func (w *wired) drop(job *Job) {
	if !w.has(job) {
		return
	}
	all := *w
	last := all[len(all)-1]
	all[job.wired-1], last.wired = last, job.wired
	all[len(all)-1] = nil
	*w, job.wired = all[:len(all)-1], 0
}

const (
	// slowTimes is how many times longer than most answers of the channel something
	// takes that is called slow, and slowLeast how long it takes at least.
	slowTimes = 8
	slowLeast = 100 * time.Millisecond
	// slowPart of a channel's connections may be busy with slow destinations.
	slowPart = 0.02
	// maxLent is how many connections may be opened in place of those that wait for
	// slow destinations, where each connection goes to one of its own.
	maxLent = 1000
)

// flight is what is under way, the longest first: a list through the jobs.
type flight struct {
	first, last *Job
	next        *Job // the first that is not overdue
}

func (f *flight) enter(job *Job) {
	if job.before = f.last; f.last == nil {
		f.first = job
	} else {
		f.last.after = job
	}
	f.last = job
	if f.next == nil {
		f.next = job
	}
}

func (f *flight) leave(job *Job) {
	if f.next == job {
		f.next = job.after
	}
	if job.before == nil {
		f.first = job.after
	} else {
		job.before.after = job.after
	}
	if job.after == nil {
		f.last = job.before
	} else {
		job.after.before = job.before
	}
	job.before, job.after = nil, nil
}

// patience is how long something may take that is not called slow. Before the first
// answer nothing is: that may be how the next hop is.
func (l *limits) patience() time.Duration {
	if l.typical.Value() == 0 {
		return l.settings.SendTimeout
	}
	return max(slowLeast, slowTimes*l.typical.Value())
}

func (l *limits) tooLong(took time.Duration) bool { return took > l.patience() }

// watch marks what is overdue, and returns when the next will be; zero if there
// is none. Behind a relay nothing is while it is under way: no connection is opened
// in its place.
func (l *limits) watch(now time.Time) (next time.Time) {
	if !l.settings.Direct {
		return time.Time{}
	}
	for job := l.flight.next; job != nil; job = job.after {
		if at := job.taken.Add(l.patience()); at.After(now) {
			return at
		}
		job.overdue = true
		l.flight.next = job.after
		if d := job.to; d != nil {
			d.overdue++
			l.destinations.judge(d, true)
		}
	}
	return time.Time{}
}

// busy reports whether all of a channel's connections are in use, beside those
// that were opened in place of others.
func (l *limits) busy(d *destination) bool {
	return l.settings.Direct && (d == nil || !d.slow) && l.underway-l.destinations.slow >= l.settings.Connections
}

// connections is how many may be open: as many as are configured and, where each
// goes to a destination of its own, others in place of those that wait for a
// slow one.
func (l *limits) connections() int { return l.settings.Connections + l.lent() }

// atOnce is how many of them the answers allow to be busy.
func (l *limits) atOnce() int {
	if l.settings.Adapt {
		return min(l.connections(), l.window.Size())
	}
	return l.connections()
}

func (l *limits) lent() int {
	if !l.settings.Direct {
		return 0
	}
	return min(l.destinations.slow, maxLent)
}
