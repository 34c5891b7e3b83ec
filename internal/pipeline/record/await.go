package record

import (
	"slices"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
)

// waiters holds the channels of callers that wait for the completion of a broadcast.
// Without waiters, a completion only reads a counter.
type waiters struct {
	count    atomic.Int64
	mu       sync.Mutex
	channels map[fanfare.EventRef][]chan struct{}
}

// Await returns a channel that is closed when a broadcast is completed from now on. A
// broadcast may have been completed before: check that after this call. forget ends the
// waiting and may be called twice. The caller limits the number of waiters.
func (r *Recorder) Await(ref fanfare.EventRef) (done <-chan struct{}, forget func()) {
	w := &r.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels == nil {
		w.channels = map[fanfare.EventRef][]chan struct{}{}
	}
	told := make(chan struct{})
	w.channels[ref] = append(w.channels[ref], told)
	w.count.Add(1)
	return told, func() { w.forget(ref, told) }
}

func (w *waiters) forget(ref fanfare.EventRef, told chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.channels[ref], told)
	if at < 0 {
		return
	}
	w.count.Add(-1)
	if w.channels[ref] = slices.Delete(w.channels[ref], at, at+1); len(w.channels[ref]) == 0 {
		delete(w.channels, ref)
	}
}

// notify wakes the waiters of completed broadcasts.
func (w *waiters) notify(day fanfare.Day, completions []fanfare.Completion) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range completions {
		ref := fanfare.EventRef{Day: day, Seq: completions[i].Seq}
		for _, told := range w.channels[ref] {
			close(told)
		}
		w.count.Add(-int64(len(w.channels[ref])))
		delete(w.channels, ref)
	}
}
