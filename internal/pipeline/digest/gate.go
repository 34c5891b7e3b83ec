package digest

import (
	"context"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
)

// A gate keeps the runs apart from what is still gathered for them: a round of
// matching that may write a row for a run is waited for before that is published, and
// none that begins later does. Rounds do not wait for anybody.
type gate struct {
	clock clock.Clock
	slots Slots

	mu     sync.Mutex
	rounds map[*Round]struct{}
	closed map[uint16]time.Time // until when; a clock that steps back does not open a slot again
}

// A Round is one of matching, from before its clock is read until what it wrote is
// known. It belongs to one goroutine.
type Round struct {
	gate      *gate
	gathering *Gathering // nil where nothing is merged
	now       time.Time
	over      chan struct{}
	dues      map[uint16]time.Time
	held      *sync.Mutex // no run is frozen, and nothing carried over, by others; nil: not held

	learned bool // what waits was read again
}

func (g *gate) begin() *Round {
	r := &Round{gate: g, over: make(chan struct{})}
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
	close(r.over)
}

// Due is when the next run of a slot is. A slot of state has nothing gathered.
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

func (g *gate) due(number uint16, now time.Time) time.Time {
	slot, known := g.slots.Slot(number)
	if !known || slot.Cadence.OfState() {
		return time.Time{}
	}
	return slot.Cadence.Next(g.after(number, now), slot.Zone)
}

// after is the time behind which the next run of a slot is.
func (g *gate) after(number uint16, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed := g.closed[number]; closed.After(now) {
		return closed
	}
	return now
}

// close closes a slot up to a time: a round that begins from now on gathers for later
// runs.
func (g *gate) close(number uint16, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = map[uint16]time.Time{}
	}
	if until.After(g.closed[number]) {
		g.closed[number] = until
	}
}

// settle waits for the rounds that are under way.
func (g *gate) settle(ctx context.Context) error {
	g.mu.Lock()
	rounds := make([]*Round, 0, len(g.rounds))
	for r := range g.rounds {
		rounds = append(rounds, r)
	}
	g.mu.Unlock()
	for _, r := range rounds {
		select {
		case <-r.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
