package deliver

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
)

const (
	// maxQueued is how many jobs of one lane may wait in an outlet; what comes
	// beyond waits on the bus.
	maxQueued = 16 * fanfare.MaxBatch
	// maxOfFlow is how many of them may be of one flow: one batch that leaves and
	// one behind it.
	maxOfFlow = 2 * fanfare.MaxBatch
	// crowded is from how many jobs on a flow gets no second batch: room is left
	// for those that have none.
	crowdedQueue = 4 * fanfare.MaxBatch
)

// A Flow is who takes turns with others inside a lane: a broadcast. What is zero
// are the small ones that share their batches.
type Flow = fanfare.EventRef

// waiting is what waits in an outlet for a connection, by lane and flow. It is
// guarded by the outlet.
type waiting struct {
	lanes [len(fanfare.Lanes)]waitingLane
	room  chan struct{} // closed and made anew whenever there may be room again
}

type waitingLane struct {
	jobs    *fairqueue.Queue[Flow, *Job]
	perFlow map[Flow]int // how many of a flow wait
}

func newWaiting() waiting {
	w := waiting{room: make(chan struct{})}
	for lane := range w.lanes {
		// Jobs cost the same, so that flows leave one by one in turn.
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

// roomFor reports whether a lane can take a batch of a flow.
func (w *waiting) roomFor(lane fanfare.Lane, flow Flow) bool {
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

// pop takes the most urgent job of some lanes, nil if there is none.
func (w *waiting) pop(some lanes) *Job {
	for lane := some.first; lane <= some.last; lane++ {
		if job, ok := w.lanes[lane].jobs.Pop(); ok {
			w.countOut(job)
			return job
		}
	}
	return nil
}

// popSameContent takes the next job of a job's flow if it is the same message.
func (w *waiting) popSameContent(as *Job) *Job {
	job, ok := w.lanes[as.batch.Lane].jobs.PopIf(as.batch.Flow, as.sharesContent)
	if !ok {
		return nil
	}
	w.countOut(job)
	return job
}

// countSameContent is how many of the next jobs of a job's flow are the same message, most
// at most.
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

// pushFront puts a job back in front of its lane.
func (w *waiting) pushFront(job *Job) {
	l := &w.lanes[job.batch.Lane]
	l.jobs.PushFront(job.batch.Flow, job, 1)
	l.perFlow[job.batch.Flow]++
}

// remove takes out the jobs for which gone is true, and returns them.
func (w *waiting) remove(gone func(*Job) bool) (removed []*Job) {
	for lane := range w.lanes {
		removed = append(removed, w.lanes[lane].jobs.Remove(gone)...)
	}
	for _, job := range removed {
		w.countOut(job)
	}
	if len(removed) > 0 {
		w.signalRoom() // many at once may pass over what left looks for
	}
	return removed
}

// countOut counts a job out.
func (w *waiting) countOut(job *Job) {
	l, flow := &w.lanes[job.batch.Lane], job.batch.Flow
	l.perFlow[flow]--
	mine := l.perFlow[flow]
	if mine == 0 {
		delete(l.perFlow, flow)
	}
	all := l.jobs.Len()
	if mine == 0 || mine == maxOfFlow-fanfare.MaxBatch-1 || all == maxQueued-fanfare.MaxBatch || all == crowdedQueue-fanfare.MaxBatch {
		w.signalRoom()
	}
}

func (w *waiting) signalRoom() {
	close(w.room)
	w.room = make(chan struct{})
}
