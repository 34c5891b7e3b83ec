package digest

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

// reschedule moves the waiting events of subscriptions whose cadence has changed to the next run of
// the new cadence. Runs that are frozen do not change.
func (g *Scheduler) reschedule(ctx context.Context) error {
	moves := g.Slots.PendingMoves()
	if len(moves) == 0 {
		return nil
	}
	if err := g.waitForRounds(ctx); err != nil { // they may have read the former slots
		return err
	}
	g.running.Lock()
	defer g.running.Unlock()
	round := g.begin()
	defer round.End()
	bySlot := g.reschedules(round, moves)
	for _, r := range g.waitingRuns() {
		by := bySlot[r.Slot]
		if by == nil {
			continue
		}
		if _, frozen, err := g.Store.RunAt(ctx, r.Slot, r.Due); err != nil || frozen {
			if err != nil {
				return err
			}
			continue
		}
		for _, day := range g.daysOf(r) {
			failpoint.Hit("before-carry")
			to, err := g.Store.Carry(ctx, day, r.Waiting, by)
			g.addWaiting(day, to...)
			if err = ignoreRemoved(err); err != nil {
				return err
			}
			failpoint.Hit("after-carry")
		}
	}
	return g.Slots.ConfirmMoves(ctx, moves)
}

// reschedules returns the new runs of subscriptions by former slot. Events that wait for a
// subscription which now reports a state are sent with the former cadence.
func (g *Scheduler) reschedules(round *Round, moves []Move) map[uint16]plan.Reschedule {
	bySlot := map[uint16]plan.Reschedule{}
	atOnce := map[string]time.Time{}
	for _, m := range moves {
		for _, was := range m.PastSlots {
			due, runs := round.Due(m.Slot)
			if m.Slot == 0 {
				slot, known := g.Slots.Slot(was)
				due, runs = g.immediateRun(round.now, slot.Service, atOnce), known
			}
			if !runs || was == m.Slot {
				continue
			}
			if bySlot[was] == nil {
				bySlot[was] = plan.Reschedule{}
			}
			bySlot[was][m.Place] = plan.Run{Slot: m.Slot, Due: due}
		}
	}
	return bySlot
}

// immediateRun returns the time of the run for waiting events of a service whose subscriptions have
// become immediate. Each service has its own time.
func (g *Scheduler) immediateRun(now time.Time, service string, of map[string]time.Time) time.Time {
	if due, known := of[service]; known {
		return due
	}
	last := g.after(0, now.Truncate(time.Second).Add(-time.Second))
	for _, r := range g.selectRuns(func(r *run) bool { return r.Slot == 0 }) {
		last = later(last, r.Due)
	}
	for _, due := range of {
		last = later(last, due)
	}
	of[service] = last.Add(time.Second)
	return of[service]
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
