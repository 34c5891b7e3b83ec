package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

// generations says which events of a topic have their messages made together.
type generations interface {
	Generation(service, topic string) catalog.Generation
}

// A window is a piece of a topic that waits for the end of its window.
type window struct {
	piece
	ends time.Time
}

// apart reports whether events of a topic are pieces of their own. Urgent ones wait
// for no window.
func (g *groups) apart(service, topic string) bool {
	of := g.generations.Generation(service, topic)
	return of.PerChange || of.Window > 0 && g.lane != fanfare.Urgent
}

// push has a piece wait for its turn, or before that for the end of its window, which
// begins with a multiple of its length and has the events that were kept in it.
func (g *groups) push(p piece) {
	if p.Topic != "" {
		of := g.generations.Generation(p.Service, p.Topic)
		p.single = of.PerChange
		if ends := p.lease.Kept.Truncate(of.Window).Add(of.Window); of.Window > 0 && g.lane != fanfare.Urgent && ends.After(g.clock.Now()) {
			at, _ := slices.BinarySearchFunc(g.windows, ends, func(w window, ends time.Time) int {
				if w.ends.After(ends) {
					return 1
				}
				return -1 // behind its own
			})
			g.windows = slices.Insert(g.windows, at, window{p, ends})
			return
		}
	}
	g.waiting.Push(p.Service, p, p.Events)
}

// endWindows has the pieces wait for their turn whose windows are over. Where no more
// groups can be read ahead all are, so that what is behind them is seen.
func (g *groups) endWindows() {
	if len(g.windows) == 0 {
		return
	}
	now, over := g.clock.Now(), 0
	for over < len(g.windows) && (g.held >= maxGroupsAhead || !g.windows[over].ends.After(now)) {
		g.waiting.Push(g.windows[over].Service, g.windows[over].piece, g.windows[over].Events)
		over++
	}
	g.windows = slices.Delete(g.windows, 0, over)
}

// nextOrEnd waits for a group, or until the first window ends; then it returns none.
func (g *groups) nextOrEnd(ctx context.Context) (*bus.Lease, error) {
	if len(g.windows) == 0 {
		return next(ctx, g.queue, g.logger)
	}
	ended := make(chan struct{})
	timer := time.AfterFunc(g.windows[0].ends.Sub(g.clock.Now()), func() { close(ended) })
	defer timer.Stop()
	lease, err := g.queue.NextOr(ctx, ended)
	if err == nil || ctx.Err() != nil || errors.Is(err, bus.ErrClosed) {
		return lease, err
	}
	return next(ctx, g.queue, g.logger)
}

// single matches and freezes the events of a piece one by one, each in a round of its own.
func (m *matching) single(ctx context.Context, p piece) {
	events, err := ingest.DecodeOf(&p.Share, p.lease.Data, p.lease.Seq)
	for i := 0; err == nil && i < len(events); i++ {
		var frozen bool
		if frozen, err = m.alone(ctx, p, events[i:i+1]); err == nil && !frozen {
			return
		}
	}
	if err != nil {
		m.fail(ctx, p.lease, err)
		m.groups.end(p.group)
		return
	}
	if err := m.groups.frozen(p); err != nil {
		m.logger.Warn("a group could not be taken off, it comes again", "error", err)
	}
}

// alone is a round of one event. Where it could not be frozen its group was given back;
// an error is one of matching.
func (m *matching) alone(ctx context.Context, p piece, event []*fanfare.AcceptedEvent) (frozen bool, err error) {
	r := m.begin()
	defer r.gathered.End()
	if err := m.matchAll(ctx, r, p, event); err != nil {
		return false, err
	}
	if err := m.finish(ctx, r); err != nil {
		m.notFrozen(ctx, err, p)
		return false, nil
	}
	return true, nil
}
