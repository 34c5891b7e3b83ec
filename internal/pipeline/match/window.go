package match

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/store/retry"
)

// generations says which events of a topic are matched together.
type generations interface {
	Generation(service, topic string) catalog.Generation
}

// A window is a piece of a topic that waits for the end of its window.
type window struct {
	piece
	ends time.Time
}

// separate reports whether the events of a topic are pieces of their own. Urgent events wait
// for no window.
func (q *groupQueue) separate(service, topic string) bool {
	of := q.generations.Generation(service, topic)
	return of.PerChange || of.Window > 0 && q.lane != fanfare.Urgent
}

// push puts a piece in the queue, or holds it until the end of its window. A window begins at a
// multiple of its length and has the events that were accepted in it.
func (q *groupQueue) push(p piece) {
	if p.Topic != "" {
		of := q.generations.Generation(p.Service, p.Topic)
		p.single = of.PerChange
		if ends := p.lease.Kept.Truncate(of.Window).Add(of.Window); of.Window > 0 && q.lane != fanfare.Urgent && ends.After(q.clock.Now()) {
			at, _ := slices.BinarySearchFunc(q.windows, ends, func(w window, ends time.Time) int {
				if w.ends.After(ends) {
					return 1
				}
				return -1 // after the others of its end
			})
			q.windows = slices.Insert(q.windows, at, window{p, ends})
			return
		}
	}
	q.waiting.Push(p.Service, p, p.Events)
}

// endWindows puts the pieces in the queue whose windows are over. If no more groups can be read
// ahead, it ends all windows, so that groups behind them are found.
func (q *groupQueue) endWindows() {
	if len(q.windows) == 0 {
		return
	}
	now, n := q.clock.Now(), 0
	for n < len(q.windows) && (q.held >= maxGroupsAhead || !q.windows[n].ends.After(now)) {
		q.waiting.Push(q.windows[n].Service, q.windows[n].piece, q.windows[n].Events)
		n++
	}
	q.windows = slices.Delete(q.windows, 0, n)
}

// nextLease waits for a group. It returns nil when the first window ends before, and an error
// only when ctx ends or the bus closes; other errors of the bus pass.
func (q *groupQueue) nextLease(ctx context.Context) (*bus.Lease, error) {
	var ended chan struct{}
	if len(q.windows) > 0 {
		ended = make(chan struct{})
		timer := time.AfterFunc(q.windows[0].ends.Sub(q.clock.Now()), func() { close(ended) })
		defer timer.Stop()
	}
	for {
		lease, err := q.queue.NextOr(ctx, ended)
		if err == nil || ctx.Err() != nil || errors.Is(err, bus.ErrClosed) {
			return lease, err
		}
		q.logger.Error("cannot read events from the bus; retrying", "error", err)
		_ = retry.Sleep(ctx, retry.Pause)
	}
}
