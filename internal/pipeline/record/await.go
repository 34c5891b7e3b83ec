package record

import (
	"slices"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
)

// waiters are those who wait for the end of a broadcast. Where there are none,
// an end costs one look at a counter.
type waiters struct {
	count    atomic.Int64
	mu       sync.Mutex
	channels map[fanfare.EventRef][]chan struct{}
}

// Await returns a channel that is closed when a broadcast is completed from now
// on: one that is complete already is not told of, so who waits looks at it
// after this call. forget ends the waiting; it may be called twice. How many may
// wait is for the caller to limit.
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

// notify wakes those who wait for what is completed.
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
