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
	// maxSleep bounds the wait, so that new slots that report a state and clock changes are detected.
	maxSleep = time.Second
	// retryPause is the pause after a failed step.
	retryPause = time.Second
	// Lifetime is the time after its due time within which a digest may be sent. An older run is frozen too, and
	// its messages expire, so that they are counted and shown.
	Lifetime = 7 * 24 * time.Hour
)

// The attributes of a run as an event.
const (
	runSource = "/fanfare/digests"
	runType   = "fanfare.digest"
)

// Run steps until ctx ends.
func (g *Scheduler) Run(ctx context.Context) {
	for {
		next, err := g.Step(ctx)
		rest := min(max(next.Sub(g.Clock.Now()), 0), maxSleep)
		if err != nil && ctx.Err() == nil {
			g.Logger.Error("cannot schedule digests; retrying", "error", err)
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

// Step reschedules moved subscriptions, removes frozen runs and publishes due runs. It returns the
// time of the next step.
func (g *Scheduler) Step(ctx context.Context) (next time.Time, err error) {
	if err := g.reschedule(ctx); err != nil {
		return next, err
	}
	if err := g.addStateRuns(ctx); err != nil { // before removeFrozen
		return next, err
	}
	if err := g.removeFrozen(ctx); err != nil {
		return next, err
	}
	return g.publish(ctx)
}

// waitingRuns returns the runs that are not frozen, in the order of their times.
func (g *Scheduler) waitingRuns() []*run {
	runs := g.selectRuns(func(r *run) bool { return !r.frozen })
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Slot, b.Slot)) })
	return runs
}

// removeFrozen removes frozen runs from their days.
func (g *Scheduler) removeFrozen(ctx context.Context) error {
	for _, r := range g.selectRuns(func(r *run) bool { return r.frozen }) {
		failpoint.Hit("before-run-forgotten")
		for _, day := range g.daysOf(r) {
			if err := ignoreRemoved(g.Store.EndAwait(ctx, day, r.Waiting)); err != nil {
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

// publish publishes the runs that are due, and returns when the next run is due.
func (g *Scheduler) publish(ctx context.Context) (next time.Time, err error) {
	now := g.Clock.Now()
	next = now.Add(maxSleep)
	var dueRuns []*run
	for _, r := range g.waitingRuns() {
		switch {
		case r.published:
		case r.Due.After(now):
			next = earlier(next, r.Due)
		default:
			g.closeSlot(r.Slot, r.Due)
			dueRuns = append(dueRuns, r)
		}
	}
	if len(dueRuns) == 0 {
		return next, nil
	}
	if err := g.waitForRounds(ctx); err != nil {
		return next, err
	}
	for _, r := range dueRuns {
		failpoint.Hit("before-run-publish")
		if err := g.Publish(ctx, g.event(r)); err != nil {
			return next, err
		}
		failpoint.Hit("after-run-publish")
		r.published = true
	}
	return next, nil
}

// event returns a run as an event.
func (g *Scheduler) event(r *run) *fanfare.AcceptedEvent {
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

// addStateRuns adds the next run of each slot that reports a state.
func (g *Scheduler) addStateRuns(ctx context.Context) error {
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
		if err := g.addStateRun(ctx, &slot); err != nil {
			return err
		}
	}
	return nil
}

func (g *Scheduler) addStateRun(ctx context.Context, slot *Slot) error {
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
	g.addWaiting(day, w)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
