package deliver

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
)

const (
	// maxQueued is the maximum number of waiting jobs of one lane; further ones wait on the
	// bus.
	maxQueued = 16 * fanfare.MaxBatch
	// maxOfFlow is the maximum number of jobs of one flow: one batch that is being sent and
	// one behind it.
	maxOfFlow = 2 * fanfare.MaxBatch
	// crowdedQueue is the number of jobs above which a flow gets no second batch, which leaves
	// capacity for flows that have none.
	crowdedQueue = 4 * fanfare.MaxBatch
)

// A Flow takes turns with the other flows of a lane: it is one broadcast. The zero Flow is
// that of small broadcasts, which share batches.
type Flow = fanfare.EventRef

// waiting holds the jobs that wait for a connection, by lane and flow. The sender's lock
// guards it.
type waiting struct {
	lanes           [len(fanfare.Lanes)]waitingLane
	capacityChanged chan struct{} // closed and replaced whenever there may be capacity again
}

type waitingLane struct {
	jobs    *fairqueue.Queue[Flow, *Job]
	perFlow map[Flow]int // number of waiting jobs
}

func newWaiting() waiting {
	w := waiting{capacityChanged: make(chan struct{})}
	for lane := range w.lanes {
		// All jobs have the same cost, so that flows take turns job by job.
		w.lanes[lane] = waitingLane{jobs: fairqueue.New[Flow, *Job](1), perFlow: map[Flow]int{}}
	}
	return w
}

func (w *waiting) len() int {
	n := 0
	for lane := range w.lanes {
		n += w.lanes[lane].jobs.Len()
	}
	return n
}

// hasCapacity reports whether a lane can take a batch of a flow.
func (w *waiting) hasCapacity(lane fanfare.Lane, flow Flow) bool {
	all, mine := w.lanes[lane].jobs.Len(), w.lanes[lane].perFlow[flow]
	switch {
	case all > maxQueued-fanfare.MaxBatch:
		return false
	case all > crowdedQueue-fanfare.MaxBatch:
		return mine == 0
	}
	return mine < maxOfFlow-fanfare.MaxBatch
}

func (w *waiting) push(job *Job) {
	l := &w.lanes[job.batch.Lane]
	l.jobs.Push(job.batch.Flow, job, 1)
	l.perFlow[job.batch.Flow]++
}

// pop returns the most urgent job of some lanes, or nil.
func (w *waiting) pop(some lanes) *Job {
	for lane := some.first; lane <= some.last; lane++ {
		if job, ok := w.lanes[lane].jobs.Pop(); ok {
			w.countOut(job)
			return job
		}
	}
	return nil
}

// popSameContent returns the next job of a job's flow if it has the same content and, as the members of a manifest are in the order of the
// subscribers, another recipient than the last one of the group.
func (w *waiting) popSameContent(as *Job, last string) *Job {
	job, ok := w.lanes[as.batch.Lane].jobs.PopIf(as.batch.Flow, func(job *Job) bool { return as.sharesContent(job) && job.Message.To != last })
	if !ok {
		return nil
	}
	w.countOut(job)
	return job
}

// countSameContent returns how many of the next jobs of a job's flow have the same content,
// at most most.
func (w *waiting) countSameContent(as *Job, most int) int {
	return w.lanes[as.batch.Lane].jobs.CountIf(as.batch.Flow, as.sharesContent, most)
}

// has reports whether a job of some lanes waits.
func (w *waiting) has(some lanes) bool {
	for lane := some.first; lane <= some.last; lane++ {
		if w.lanes[lane].jobs.Len() > 0 {
			return true
		}
	}
	return false
}

// pushFront puts a job back at the front of its lane.
func (w *waiting) pushFront(job *Job) {
	l := &w.lanes[job.batch.Lane]
	l.jobs.PushFront(job.batch.Flow, job, 1)
	l.perFlow[job.batch.Flow]++
}

// remove removes and returns the jobs for which gone returns true.
func (w *waiting) remove(gone func(*Job) bool) (removed []*Job) {
	for lane := range w.lanes {
		removed = append(removed, w.lanes[lane].jobs.Remove(gone)...)
	}
	for _, job := range removed {
		w.countOut(job)
	}
	if len(removed) > 0 {
		w.signalCapacity() // countOut signals at exact counts, which many removals at once may skip
	}
	return removed
}

// countOut updates the counts after a job was taken out.
func (w *waiting) countOut(job *Job) {
	l, flow := &w.lanes[job.batch.Lane], job.batch.Flow
	l.perFlow[flow]--
	mine := l.perFlow[flow]
	if mine == 0 {
		delete(l.perFlow, flow)
	}
	all := l.jobs.Len()
	if mine == 0 || mine == maxOfFlow-fanfare.MaxBatch-1 || all == maxQueued-fanfare.MaxBatch || all == crowdedQueue-fanfare.MaxBatch {
		w.signalCapacity()
	}
}

func (w *waiting) signalCapacity() {
	close(w.capacityChanged)
	w.capacityChanged = make(chan struct{})
}
