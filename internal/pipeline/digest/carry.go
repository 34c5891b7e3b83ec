package digest

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

// carry takes what waits for subscriptions that have another cadence now to the next
// run of that. What went out before stays where it was.
func (g *Gathering) carry(ctx context.Context) error {
	moves := g.Slots.Moves()
	if len(moves) == 0 {
		return nil
	}
	if err := g.settle(ctx); err != nil { // of rounds that have seen the slots before
		return err
	}
	g.running.Lock()
	defer g.running.Unlock()
	round := g.begin()
	defer round.End()
	carries := g.carries(round, moves)
	for _, r := range g.waitingRuns() {
		by := carries[r.Slot]
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
			g.await(day, to...)
			if err = unlessGone(err); err != nil {
				return err
			}
			failpoint.Hit("after-carry")
		}
	}
	return g.Slots.Carried(ctx, moves)
}

// carries says by slot where subscriptions go that were in it. Who wants the state of
// things from now on is told with the old cadence what has happened before.
func (g *Gathering) carries(round *Round, moves []Move) map[uint16]plan.Carry {
	carries := map[uint16]plan.Carry{}
	atOnce := map[string]time.Time{}
	for _, m := range moves {
		for _, was := range m.Was {
			due, runs := round.Due(m.Slot)
			if m.Slot == 0 {
				slot, known := g.Slots.Slot(was)
				due, runs = g.atOnce(round.now, slot.Service, atOnce), known
			}
			if !runs || was == m.Slot {
				continue
			}
			if carries[was] == nil {
				carries[was] = plan.Carry{}
			}
			carries[was][m.Place] = plan.Run{Slot: m.Slot, Due: due}
		}
	}
	return carries
}

// atOnce is when the run is of what waited for people of a service who want it at
// once now. Each service has a time of its own.
func (g *Gathering) atOnce(now time.Time, service string, of map[string]time.Time) time.Time {
	if due, known := of[service]; known {
		return due
	}
	last := g.after(0, now.Truncate(time.Second).Add(-time.Second))
	for _, r := range g.those(func(r *run) bool { return r.Slot == 0 }) {
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
