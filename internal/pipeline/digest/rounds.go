package digest

import (
	"context"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
)

// rounds orders rounds of matching and runs. A run is published after the rounds that may add
// recipients to it, and later rounds add to later runs. A round never waits.
type rounds struct {
	clock clock.Clock
	slots Slots

	mu          sync.Mutex
	rounds      map[*Round]struct{}
	closedUntil map[uint16]time.Time // a clock that steps back does not open a slot again
}

// A Round is a round of matching, from before its time is read until its commit is noted. It belongs
// to one goroutine.
type Round struct {
	gate      *rounds
	scheduler *Scheduler // nil if the round merges nothing
	now       time.Time
	done      chan struct{}
	dues      map[uint16]time.Time
	held      *sync.Mutex // Scheduler.running, while the round holds it

	loaded bool // the runs were read from the store
}

func (g *rounds) begin() *Round {
	r := &Round{gate: g, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == nil {
		g.rounds = map[*Round]struct{}{}
	}
	g.rounds[r] = struct{}{}
	r.now = g.clock.Now()
	return r
}

// End ends the round.
func (r *Round) End() {
	if r.held != nil {
		r.held.Unlock()
		r.held = nil
	}
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	delete(r.gate.rounds, r)
	close(r.done)
}

// Due returns when the next run of a slot is; false if there is none, or if the slot reports a state,
// for which no events wait.
func (r *Round) Due(number uint16) (time.Time, bool) {
	if due, known := r.dues[number]; known {
		return due, !due.IsZero()
	}
	due := r.gate.due(number, r.now)
	if r.dues == nil {
		r.dues = map[uint16]time.Time{}
	}
	r.dues[number] = due
	return due, !due.IsZero()
}

func (g *rounds) due(number uint16, now time.Time) time.Time {
	slot, known := g.slots.Slot(number)
	if !known || slot.Cadence.OfState() {
		return time.Time{}
	}
	return slot.Cadence.Next(g.after(number, now), slot.Zone)
}

// after returns the time after which the next run of a slot is.
func (g *rounds) after(number uint16, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed := g.closedUntil[number]; closed.After(now) {
		return closed
	}
	return now
}

// closeSlot closes a slot up to a time: rounds that begin from now on add to later runs.
func (g *rounds) closeSlot(number uint16, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedUntil == nil {
		g.closedUntil = map[uint16]time.Time{}
	}
	if until.After(g.closedUntil[number]) {
		g.closedUntil[number] = until
	}
}

// waitForRounds waits for the rounds in progress.
func (g *rounds) waitForRounds(ctx context.Context) error {
	g.mu.Lock()
	rounds := make([]*Round, 0, len(g.rounds))
	for r := range g.rounds {
		rounds = append(rounds, r)
	}
	g.mu.Unlock()
	for _, r := range rounds {
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
