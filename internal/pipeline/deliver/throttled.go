package deliver

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

const (
	// maxThrottled is the maximum number of throttled jobs of a lane. At the maximum, no
	// other job is sent before one of them.
	maxThrottled = fanfare.MaxBatch
	// maxSlowThrottled is the maximum number of throttled jobs of one slow destination.
	maxSlowThrottled = 10
	// longestThrottled is the longest time for which a job is throttled. A job that would
	// wait longer is postponed, so that it uses no memory.
	longestThrottled = 5 * time.Second
	// longestPostponement is the longest single postponement of a job; after it, the
	// destination is examined again.
	longestPostponement = 15 * time.Minute
	// longestSlowPostponement replaces it for a slow destination behind a relay, which
	// finds capacity when the other destinations are done.
	longestSlowPostponement = time.Minute
)

// throttledJobs holds the jobs that wait in memory for their destinations. The sender's
// lock guards it.
type throttledJobs struct {
	waiting   [len(fanfare.Lanes)]int
	wakeups   wakeHeap       // destinations whose rate allows one message at a time
	slowQueue []*destination // destinations that wait for the share of slow destinations
}

// throttle decides where a job waits if its destination has no capacity for it.
func (l *limits) throttle(d *destination, job *Job, wait time.Duration, now time.Time) (result admission, until time.Time) {
	lane := job.batch.Lane
	spacing := l.spacing(d)
	wait += spacing * time.Duration(d.throttled.len())
	switch {
	case job.readmitted: // it was throttled before
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

// maxPostponement returns the longest single postponement of a job of a destination.
func (l *limits) maxPostponement(d *destination) time.Duration {
	if d.slow && !l.settings.Direct {
		return longestSlowPostponement
	}
	return longestPostponement
}

// latestPostponement returns the end of the longest postponement, with jitter.
func latestPostponement(now time.Time, longest time.Duration) time.Time {
	return now.Add(longest + time.Duration(rand.Int64N(int64(longest/4))))
}

// enqueueThrottled lets a job wait for its destination, in front of others if it has waited
// before.
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
	if l.waitsForGroup(d, job) && d.wait(now) <= 0 && d.hasCapacity(now) {
		l.throttled.wakeups.set(d, now)
		return
	}
	l.schedule(d, now)
}

// throttledCount returns the number of throttled jobs.
func (l *limits) throttledCount() int {
	n := 0
	for _, waiting := range l.throttled.waiting {
		n += waiting
	}
	return n
}

// readmissionDone notes that a readmitted job was examined.
func (l *limits) readmissionDone(job *Job) {
	if job.readmitted {
		job.readmitted = false
		job.dest.readmitted--
	}
}

// schedule makes sure that the first throttled job of a destination is readmitted when
// there is capacity. A job that waits for a reply needs no timer: the reply readmits it.
func (l *limits) schedule(d *destination, now time.Time) {
	switch {
	case d.throttled.len() == 0:
	case l.wait(d, now) > 0:
		l.throttled.wakeups.set(d, now.Add(l.wait(d, now)))
	case !d.inSlowQueue && (l.slowShareUsed(d) || d.active+d.readmitted == 0): // nothing else would readmit it
		d.inSlowQueue = true
		l.throttled.slowQueue = append(l.throttled.slowQueue, d)
	}
}

// wait returns how long the rate of a destination does not allow the next group.
func (l *limits) wait(d *destination, now time.Time) time.Duration {
	n, counted := d.group(l.settings.Multicast)
	if counted {
		n = 1
	}
	return d.waitFor(n, now)
}

// takeReady returns the jobs for which a destination has capacity now, and all of its jobs if
// it is suspended, so that they are postponed.
func (l *limits) takeReady(d *destination, now time.Time, ready []*Job) []*Job {
	if d == nil {
		return ready
	}
	for d.throttled.len() > 0 && (d.breaker.Tripped() || d.hasCapacity(now) && !l.slowShareUsed(d)) {
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

// takeDue returns the jobs whose destinations have capacity by now.
func (l *limits) takeDue(now time.Time) (ready []*Job) {
	for len(l.throttled.wakeups) > 0 && !l.throttled.wakeups[0].wakeAt.After(now) {
		ready = l.takeReady(l.throttled.wakeups.first(), now, ready)
	}
	for before := len(ready); len(l.throttled.slowQueue) > 0 && len(ready) == before && !l.slowShareUsed(l.throttled.slowQueue[0]); { // one at a time, since it counts only when a connection takes it
		d := l.throttled.slowQueue[0]
		l.throttled.slowQueue = l.throttled.slowQueue[1:]
		d.inSlowQueue = false
		ready = l.takeReady(d, now, ready)
	}
	return ready
}

// remove removes and returns the throttled jobs for which gone returns true.
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

// laneQueue is a queue of jobs by lane.
type laneQueue [len(fanfare.Lanes)][]*Job

func (q *laneQueue) len() int { return len(q[0]) + len(q[1]) + len(q[2]) }

func (q *laneQueue) push(job *Job) { q[job.batch.Lane] = append(q[job.batch.Lane], job) }

func (q *laneQueue) unpop(job *Job) {
	q[job.batch.Lane] = append([]*Job{job}, q[job.batch.Lane]...)
}

// pop returns the most urgent job, or nil.
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

// wakeHeap orders destinations by wakeAt.
type wakeHeap []*destination

func (a *wakeHeap) set(d *destination, at time.Time) {
	d.wakeAt = at
	if d.heapIndex > 0 {
		heap.Fix(a, d.heapIndex-1)
		return
	}
	heap.Push(a, d)
}

// next returns when the first destination is due, or zero.
func (a wakeHeap) next() time.Time {
	if len(a) == 0 {
		return time.Time{}
	}
	return a[0].wakeAt
}

func (a *wakeHeap) first() *destination { return heap.Pop(a).(*destination) }

// These methods implement heap.Interface.

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

// Pop removes the last destination.
func (a *wakeHeap) Pop() any {
	old := *a
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*a, d.heapIndex = old[:len(old)-1], 0
	return d
}
