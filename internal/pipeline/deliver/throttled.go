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
	maxThrottled = fanfare.MaxBatch
	// slowAside is how many of them may wait for one slow destination.
	maxSlowThrottled = 10
	// asideLongest is for how long a job may have to wait aside. One that would wait
	// for longer waits in the store, where it holds nothing.
	longestThrottled = 5 * time.Second
	// bookedLongest is for how long a job is put off at once; then its destination
	// is looked at again.
	longestPostponement = 15 * time.Minute
	// bookedSlow is that for a slow destination behind a relay: when the others have
	// theirs there is room for it.
	longestSlowPostponement = time.Minute
)

// throttledJobs is what waits in an outlet for its destination. It is guarded by the
// outlet.
type throttledJobs struct {
	waiting   [len(fanfare.Lanes)]int
	wakeups   wakeHeap       // destinations whose rate lets one pass at a time to come
	slowQueue []*destination // those that wait for the share of the slow ones
}

// throttle says where a job waits that its destination has no room for.
func (l *limits) throttle(d *destination, job *Job, wait time.Duration, now time.Time) (says admission, until time.Time) {
	lane := job.batch.Lane
	spacing := l.spacing(d)
	wait += spacing * time.Duration(d.throttled.len())
	switch {
	case job.readmitted: // it was here before
		return throttled, time.Time{}
	case wait > longestThrottled && (d.slow || d.limited()), d.slow && l.throttledFull(d, lane):
		if earliest := now.Add(max(wait, time.Second)); d.bookedUntil.Before(earliest) {
			d.bookedUntil = earliest
		}
		d.bookedUntil = d.bookedUntil.Add(spacing)
		if latest := latestPostponement(now, l.maxPostponement(d)); d.bookedUntil.After(latest) {
			return postponeJob, latest
		}
		return postponeJob, d.bookedUntil
	case l.throttled.waiting[lane] >= maxThrottled:
		l.blocked = true
		return waitForReply, time.Time{}
	}
	return throttled, time.Time{}
}

// maxPostponement is for how long what is for a destination is put off at once.
func (l *limits) maxPostponement(d *destination) time.Duration {
	if d.slow && !l.settings.Direct {
		return longestSlowPostponement
	}
	return longestPostponement
}

// latestPostponement is until when a job is put off that is put off for so long.
func latestPostponement(now time.Time, longest time.Duration) time.Time {
	return now.Add(longest + time.Duration(rand.Int64N(int64(longest/4))))
}

// enqueueThrottled has a job wait for its destination, in front of others if it has
// waited before.
func (l *limits) enqueueThrottled(job *Job, now time.Time) {
	d := l.destinationOf(job, now)
	lane := job.batch.Lane
	l.throttled.waiting[lane]++
	if job.readmitted {
		l.readmissionDone(job)
		d.throttled.unpop(job)
	} else {
		d.throttled.push(job)
	}
	job.dest = d
	if l.waitsForGroup(d, job) && d.wait(now) <= 0 && d.hasRoom(now) {
		l.throttled.wakeups.set(d, now)
		return
	}
	l.schedule(d, now)
}

// throttledCount is how many jobs wait for their destinations.
func (l *limits) throttledCount() int {
	n := 0
	for _, waiting := range l.throttled.waiting {
		n += waiting
	}
	return n
}

// readmissionDone counts a job that was brought back from aside as looked at.
func (l *limits) readmissionDone(job *Job) {
	if job.readmitted {
		job.readmitted = false
		job.dest.readmitted--
	}
}

// schedule sees to it that the first job that waits for a destination comes back
// when there is room. What waits for an answer needs nothing: the answer brings
// it back.
func (l *limits) schedule(d *destination, now time.Time) {
	switch {
	case d.throttled.len() == 0:
	case l.wait(d, now) > 0:
		l.throttled.wakeups.set(d, now.Add(l.wait(d, now)))
	case !d.inSlowQueue && (l.slowShareUsed(d) || d.active+d.readmitted == 0): // or nothing would bring it back
		d.inSlowQueue = true
		l.throttled.slowQueue = append(l.throttled.slowQueue, d)
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

// takeReady returns the jobs that a destination has room for now, and all of them if
// it is to be left alone: they are put off.
func (l *limits) takeReady(d *destination, now time.Time, ready []*Job) []*Job {
	if d == nil {
		return ready
	}
	for d.throttled.len() > 0 && (d.breaker.Tripped() || d.hasRoom(now) && !l.slowShareUsed(d)) {
		n, counted := d.group(l.settings.Multicast)
		if n > 1 && !counted && !d.breaker.Tripped() {
			if d.waitFor(n, now) > 0 {
				break
			}
			d.take(n, now)
		}
		for range n {
			job := d.throttled.pop()
			l.throttled.waiting[job.batch.Lane]--
			job.readmitted, job.destinationCounted = true, job.destinationCounted || n > 1 && !d.breaker.Tripped()
			d.readmitted++
			ready = append(ready, job)
		}
	}
	l.schedule(d, now)
	return ready
}

// takeDue returns the jobs whose destinations have room by now.
func (l *limits) takeDue(now time.Time) (ready []*Job) {
	for len(l.throttled.wakeups) > 0 && !l.throttled.wakeups[0].wakeAt.After(now) {
		ready = l.takeReady(l.throttled.wakeups.first(), now, ready)
	}
	for before := len(ready); len(l.throttled.slowQueue) > 0 && len(ready) == before && !l.slowShareUsed(l.throttled.slowQueue[0]); { // one at a time: it counts when it is taken
		d := l.throttled.slowQueue[0]
		l.throttled.slowQueue = l.throttled.slowQueue[1:]
		d.inSlowQueue = false
		ready = l.takeReady(d, now, ready)
	}
	return ready
}

// remove takes out the jobs for which gone is true, and returns them.
func (l *limits) remove(gone func(*Job) bool) (removed []*Job) {
	if l.throttled.waiting == [len(fanfare.Lanes)]int{} {
		return nil
	}
	for _, d := range l.destinations.known {
		for lane := range d.throttled {
			d.throttled[lane] = slices.DeleteFunc(d.throttled[lane], func(job *Job) bool {
				if !gone(job) {
					return false
				}
				removed = append(removed, job)
				l.throttled.waiting[lane]--
				return true
			})
		}
	}
	return removed
}

// laneQueue are jobs in a line, by lane.
type laneQueue [len(fanfare.Lanes)][]*Job

func (q *laneQueue) len() int { return len(q[0]) + len(q[1]) + len(q[2]) }

func (q *laneQueue) push(job *Job) { q[job.batch.Lane] = append(q[job.batch.Lane], job) }

func (q *laneQueue) unpop(job *Job) {
	q[job.batch.Lane] = append([]*Job{job}, q[job.batch.Lane]...)
}

// pop takes the most urgent job, nil if there is none.
func (q *laneQueue) pop() *Job {
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

// wakeHeap has destinations by when they are to be woken.
type wakeHeap []*destination

func (a *wakeHeap) set(d *destination, at time.Time) {
	d.wakeAt = at
	if d.heapIndex > 0 {
		heap.Fix(a, d.heapIndex-1)
		return
	}
	heap.Push(a, d)
}

// next is when the first is to be woken, zero if none is.
func (a wakeHeap) next() time.Time {
	if len(a) == 0 {
		return time.Time{}
	}
	return a[0].wakeAt
}

func (a *wakeHeap) first() *destination { return heap.Pop(a).(*destination) }

// The methods of heap.Interface.

func (a wakeHeap) Len() int           { return len(a) }
func (a wakeHeap) Less(i, j int) bool { return a[i].wakeAt.Before(a[j].wakeAt) }
func (a wakeHeap) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].heapIndex, a[j].heapIndex = i+1, j+1
}

// Push appends a destination.
func (a *wakeHeap) Push(d any) {
	*a = append(*a, d.(*destination))
	d.(*destination).heapIndex = len(*a)
}

// Pop takes the last one out.
func (a *wakeHeap) Pop() any {
	old := *a
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*a, d.heapIndex = old[:len(old)-1], 0
	return d
}
