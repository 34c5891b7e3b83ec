package deliver

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

const (
	// maxAside is how many jobs of a lane may wait for their destinations in an
	// outlet. While that many do, no other job leaves before one of them.
	maxAside = fanfare.MaxBatch
	// slowAside is how many of them may wait for one slow destination.
	slowAside = 10
	// asideLongest is for how long a job may have to wait aside. One that would wait
	// for longer waits in the store, where it holds nothing.
	asideLongest = 5 * time.Second
	// bookedLongest is for how long a job is put off at once; then its destination
	// is looked at again.
	bookedLongest = 15 * time.Minute
	// bookedSlow is that for a slow destination behind a relay: when the others have
	// theirs there is room for it.
	bookedSlow = time.Minute
)

// aside is what waits in an outlet for its destination. It is guarded by the
// outlet.
type aside struct {
	waiting [len(fanfare.Lanes)]int
	alarm   alarm          // destinations whose rate lets one pass at a time to come
	slow    []*destination // those that wait for the share of the slow ones
}

// behind says where a job waits that its destination has no room for.
func (l *limits) behind(d *destination, job *Job, wait time.Duration, now time.Time) (says permit, until time.Time) {
	lane := job.batch.Lane
	spacing := l.spacing(d)
	wait += spacing * time.Duration(d.aside.len())
	switch {
	case job.turn: // it was here before
		return apart, time.Time{}
	case wait > asideLongest && (d.slow || d.limited()), d.slow && l.enoughAside(d, lane):
		if earliest := now.Add(max(wait, time.Second)); d.booked.Before(earliest) {
			d.booked = earliest
		}
		d.booked = d.booked.Add(spacing)
		if latest := latestBooked(now, l.longest(d)); d.booked.After(latest) {
			return away, latest
		}
		return away, d.booked
	case l.aside.waiting[lane] >= maxAside:
		l.blocked = true
		return full, time.Time{}
	}
	return apart, time.Time{}
}

// longest is for how long what is for a destination is put off at once.
func (l *limits) longest(d *destination) time.Duration {
	if d.slow && !l.settings.Direct {
		return bookedSlow
	}
	return bookedLongest
}

// latestBooked is until when a job is put off that is put off for so long.
func latestBooked(now time.Time, longest time.Duration) time.Time {
	return now.Add(longest + time.Duration(rand.Int64N(int64(longest/4))))
}

// setAside has a job wait for its destination, in front of others if it has
// waited before.
func (l *limits) setAside(job *Job, now time.Time) {
	d := l.destinationOf(job, now)
	lane := job.batch.Lane
	l.aside.waiting[lane]++
	if job.turn {
		l.turned(job)
		d.aside.unpop(job)
	} else {
		d.aside.push(job)
	}
	job.to = d
	if l.gathers(d, job) && d.wait(now) <= 0 && d.room(now) {
		l.aside.alarm.set(d, now)
		return
	}
	l.schedule(d, now)
}

// asides is how many jobs wait for their destinations.
func (l *limits) asides() int {
	n := 0
	for _, waiting := range l.aside.waiting {
		n += waiting
	}
	return n
}

// turned counts a job that was brought back from aside as looked at.
func (l *limits) turned(job *Job) {
	if job.turn {
		job.turn = false
		job.to.readied--
	}
}

// schedule sees to it that the first job that waits for a destination comes back
// when there is room. What waits for an answer needs nothing: the answer brings
// it back.
func (l *limits) schedule(d *destination, now time.Time) {
	switch {
	case d.aside.len() == 0:
	case l.wait(d, now) > 0:
		l.aside.alarm.set(d, now.Add(l.wait(d, now)))
	case !d.lined && (l.crowded(d) || d.underway+d.readied == 0): // or nothing would bring it back
		d.lined = true
		l.aside.slow = append(l.aside.slow, d)
	}
}

// wait is how long the rate of a destination does not let those pass that leave to it
// together next.
func (l *limits) wait(d *destination, now time.Time) time.Duration {
	n, counted := d.group(l.settings.Multicast)
	if counted {
		n = 1
	}
	return d.waitFor(n, now)
}

// back returns the jobs that a destination has room for now, and all of them if
// it is to be left alone: they are put off.
func (l *limits) back(d *destination, now time.Time, ready []*Job) []*Job {
	if d == nil {
		return ready
	}
	for d.aside.len() > 0 && (d.breaker.Tripped() || d.room(now) && !l.crowded(d)) {
		n, counted := d.group(l.settings.Multicast)
		if n > 1 && !counted && !d.breaker.Tripped() {
			if d.waitFor(n, now) > 0 {
				break
			}
			d.take(n, now)
		}
		for range n {
			job := d.aside.pop()
			l.aside.waiting[job.batch.Lane]--
			job.turn, job.allowed = true, job.allowed || n > 1 && !d.breaker.Tripped()
			d.readied++
			ready = append(ready, job)
		}
	}
	l.schedule(d, now)
	return ready
}

// due returns the jobs whose destinations have room by now.
func (l *limits) due(now time.Time) (ready []*Job) {
	for len(l.aside.alarm) > 0 && !l.aside.alarm[0].wake.After(now) {
		ready = l.back(l.aside.alarm.first(), now, ready)
	}
	for before := len(ready); len(l.aside.slow) > 0 && len(ready) == before && !l.crowded(l.aside.slow[0]); { // one at a time: it counts when it is taken
		d := l.aside.slow[0]
		l.aside.slow = l.aside.slow[1:]
		d.lined = false
		ready = l.back(d, now, ready)
	}
	return ready
}

// remove takes out the jobs for which gone is true, and returns them.
func (l *limits) remove(gone func(*Job) bool) (removed []*Job) {
	if l.aside.waiting == [len(fanfare.Lanes)]int{} {
		return nil
	}
	for _, d := range l.destinations.known {
		for lane := range d.aside {
			d.aside[lane] = slices.DeleteFunc(d.aside[lane], func(job *Job) bool {
				if !gone(job) {
					return false
				}
				removed = append(removed, job)
				l.aside.waiting[lane]--
				return true
			})
		}
	}
	return removed
}

// line are jobs in a line, by lane.
type line [len(fanfare.Lanes)][]*Job

func (q *line) len() int { return len(q[0]) + len(q[1]) + len(q[2]) }

func (q *line) push(job *Job) { q[job.batch.Lane] = append(q[job.batch.Lane], job) }

func (q *line) unpop(job *Job) {
	q[job.batch.Lane] = append([]*Job{job}, q[job.batch.Lane]...)
}

// pop takes the most urgent job, nil if there is none.
func (q *line) pop() *Job {
	for lane := range q {
		if len(q[lane]) > 0 {
			job := q[lane][0]
			q[lane][0] = nil
			if q[lane] = q[lane][1:]; len(q[lane]) == 0 {
				q[lane] = nil
			}
			return job
		}
	}
	return nil
}

// alarm has destinations by when they are to be woken.
type alarm []*destination

func (a *alarm) set(d *destination, at time.Time) {
	d.wake = at
	if d.place > 0 {
		heap.Fix(a, d.place-1)
		return
	}
	heap.Push(a, d)
}

// next is when the first is to be woken, zero if none is.
func (a alarm) next() time.Time {
	if len(a) == 0 {
		return time.Time{}
	}
	return a[0].wake
}

func (a *alarm) first() *destination { return heap.Pop(a).(*destination) }

// The methods of heap.Interface.

func (a alarm) Len() int           { return len(a) }
func (a alarm) Less(i, j int) bool { return a[i].wake.Before(a[j].wake) }
func (a alarm) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i+1, j+1
}

// Push appends a destination.
func (a *alarm) Push(d any) {
	*a = append(*a, d.(*destination))
	d.(*destination).place = len(*a)
}

// Pop takes the last one out.
func (a *alarm) Pop() any {
	old := *a
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*a, d.place = old[:len(old)-1], 0
	return d
}
