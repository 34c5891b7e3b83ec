package condition

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// A history holds the expected hits after each change of a world; a change adds, replaces or
// removes one subscription.
type history struct {
	changes []change
	events  []expr.Event
	want    [][][]Hit // by number of changes, and event
}

// A change adds entries in their order, or removes an id.
type change struct {
	add    []Entry
	remove fanfare.RowID
}

func drawHistory(t *rapid.T, w *world) *history {
	h := &history{events: make([]Event, 4)}
	for i := range h.events {
		h.events[i] = drawEvent(t)
	}
	s := scales()["few"]
	h.remember(t, w)
	for range 40 {
		c := change{remove: s.drawPlace(t)}
		if !oneIn(t, 3) {
			c.add = make([]Entry, rapid.IntRange(1, 4).Draw(t, "entries"))
		}
		for i := range c.add {
			c.add[i] = w.drawEntry(t, s)
			w.entries[c.add[i].Place] = c.add[i]
			h.remember(t, w)
		}
		if c.add == nil {
			delete(w.entries, c.remove)
			h.remember(t, w)
		}
		h.changes = append(h.changes, c)
	}
	return h
}

// remember records the expected hits after a change.
func (h *history) remember(t *rapid.T, w *world) {
	hits := make([][]Hit, len(h.events))
	for i, event := range h.events {
		hits[i] = w.naive(t, event)
	}
	h.want = append(h.want, hits)
}

// The test runs matches while subscriptions are added and removed one by one. The complete hits of
// each match are those after some number of changes: at least the changes that had ended before
// the match began, and at most those that had begun before it ended.
func TestAConcurrentMatchSeesOneMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		h := drawHistory(t, w)
		var begun, over atomic.Int64
		var readers sync.WaitGroup
		var wrong atomic.Pointer[string]
		fail := func(text string) { wrong.CompareAndSwap(nil, &text) }
		for range 2 {
			readers.Go(func() {
				for last := false; !last; {
					last = int(over.Load()) == len(h.want)-1
					for i, event := range h.events {
						from := over.Load()
						got, err := w.x.Match(w.key, event, []Hit{})
						to := begun.Load()
						if err != nil || !slices.ContainsFunc(h.want[from:to+1], func(all [][]Hit) bool { return slices.Equal(got, all[i]) }) {
							fail("the hits of " + string(event.Data) + " are those of no moment of the match")
						}
					}
				}
			})
		}
		for _, c := range h.changes {
			if c.add == nil {
				begun.Add(1)
				w.x.Remove(w.key, c.remove)
			} else {
				begun.Add(int64(len(c.add)))
				if err := w.x.Add(w.key, c.add); err != nil {
					fail(err.Error())
				}
			}
			over.Store(begun.Load())
		}
		readers.Wait()
		if text := wrong.Load(); text != nil {
			t.Fatal(*text)
		}
	})
}
