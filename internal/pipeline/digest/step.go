package digest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

const (
	// longestRest bounds the wait, so that a slot of state that is new, and a step of
	// the clock, are noticed.
	longestRest = time.Second
	// retryPause is how long work that failed rests.
	retryPause = time.Second
	// Lifetime is how long after its time a run may leave. What is older is frozen all
	// the same, and expires, so that it is counted and shown.
	Lifetime = 7 * 24 * time.Hour
)

// The words of a run as an event.
const (
	runSource = "/fanfare/digests"
	runType   = "fanfare.digest"
)

// Run steps until ctx ends.
func (g *Gathering) Run(ctx context.Context) {
	for {
		next, err := g.Step(ctx)
		rest := min(max(next.Sub(g.Clock.Now()), 0), longestRest)
		if err != nil && ctx.Err() == nil {
			g.Logger.Error("what is gathered could not be looked after, it is tried again", "error", err)
			rest = retryPause
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-g.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Step does all that is to be done now, and returns when the next run is due at the
// latest.
func (g *Gathering) Step(ctx context.Context) (next time.Time, err error) {
	if err := g.carry(ctx); err != nil {
		return next, err
	}
	if err := g.awaitStates(ctx); err != nil { // before what they waited for is forgotten
		return next, err
	}
	if err := g.finish(ctx); err != nil {
		return next, err
	}
	return g.publish(ctx)
}

// waitingRuns are the runs that are not frozen, in the order in which they are due.
func (g *Gathering) waitingRuns() []*run {
	runs := g.those(func(r *run) bool { return !r.frozen })
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Slot, b.Slot)) })
	return runs
}

// finish has the days forget the runs that are frozen.
func (g *Gathering) finish(ctx context.Context) error {
	for _, r := range g.those(func(r *run) bool { return r.frozen }) {
		failpoint.Hit("before-run-forgotten")
		for _, day := range g.daysOf(r) {
			if err := unlessGone(g.Store.EndAwait(ctx, day, r.Waiting)); err != nil {
				return err
			}
		}
		failpoint.Hit("after-run-forgotten")
		g.mu.Lock()
		delete(g.runs, r.key())
		g.mu.Unlock()
	}
	return nil
}

// publish publishes the runs whose time has come, and returns when the next is due.
func (g *Gathering) publish(ctx context.Context) (next time.Time, err error) {
	now := g.Clock.Now()
	next = now.Add(longestRest)
	var ripe []*run
	for _, r := range g.waitingRuns() {
		switch {
		case r.published:
		case r.Due.After(now):
			next = earlier(next, r.Due)
		default:
			g.close(r.Slot, r.Due)
			ripe = append(ripe, r)
		}
	}
	if len(ripe) == 0 {
		return next, nil
	}
	if err := g.settle(ctx); err != nil {
		return next, err
	}
	for _, r := range ripe {
		failpoint.Hit("before-run-publish")
		if err := g.Publish(ctx, g.event(r)); err != nil {
			return next, err
		}
		failpoint.Hit("after-run-publish")
		r.published = true
	}
	return next, nil
}

// event is the event that a run is.
func (g *Gathering) event(r *run) *fanfare.AcceptedEvent {
	of := &fanfare.Run{Slot: r.Slot, Due: r.Due}
	slot, _ := g.Slots.Slot(r.Slot)
	of.Cadence = slot.Cadence.String()
	if slot.Cadence.Local() && slot.Zone != nil {
		of.Zone = slot.Zone.String()
	}
	return &fanfare.AcceptedEvent{
		Service: r.Service, Lane: fanfare.Bulk, ReceivedAt: r.Due, Expires: r.Due.Add(Lifetime), Run: of,
		Event: fanfare.Event{ID: of.ID(), Source: runSource, Type: runType, Subject: of.Cadence, Time: r.Due},
	}
}

// awaitStates has each slot of state wait for its next run.
func (g *Gathering) awaitStates(ctx context.Context) error {
	var waits map[uint16]bool
	for _, slot := range g.Slots.Slots() {
		if !slot.Cadence.OfState() {
			continue
		}
		if waits == nil {
			waits = map[uint16]bool{}
			for _, r := range g.waitingRuns() {
				waits[r.Slot] = true
			}
		}
		if waits[slot.Number] {
			continue
		}
		if err := g.awaitState(ctx, &slot); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gathering) awaitState(ctx context.Context, slot *Slot) error {
	now := g.Clock.Now()
	due := slot.Cadence.Next(g.after(slot.Number, now), slot.Zone)
	if due.IsZero() {
		return nil
	}
	w := deliveries.Waiting{Slot: slot.Number, Due: due, Service: slot.Service}
	day := fanfare.DayOf(now)
	if err := g.Store.Await(ctx, day, []deliveries.Waiting{w}); err != nil {
		return err
	}
	g.await(day, w)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
