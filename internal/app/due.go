package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/generate"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// due hands work that waits for its time back to the bus. It knows the earliest
// time of each day's file; the work itself is in the store.
type due struct {
	store  *sqlite.Deliveries
	bus    *bus.Bus
	clock  kit.Clock
	logger *slog.Logger

	mu   sync.Mutex
	next map[fanfare.Day]time.Time
	wake chan struct{}
}

func newDue(store *sqlite.Deliveries, b *bus.Bus, clock kit.Clock, logger *slog.Logger) *due {
	return &due{store: store, bus: b, clock: clock, logger: logger, next: map[fanfare.Day]time.Time{}, wake: make(chan struct{}, 1)}
}

// tell notes that a day has work at a time.
func (d *due) tell(day fanfare.Day, at time.Time) {
	d.mu.Lock()
	known, ok := d.next[day]
	sooner := !ok || at.Before(known)
	if sooner {
		d.next[day] = at
	}
	d.mu.Unlock()
	if sooner {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// learn reads the earliest time of a day from the store.
func (d *due) learn(ctx context.Context, day fanfare.Day) error {
	at, err := d.store.NextDue(ctx, day)
	if err == nil && !at.IsZero() {
		d.tell(day, at)
	}
	return err
}

const (
	// dueBatch is how many pieces of work are read at a time.
	dueBatch = 5000
	// longestRest bounds the wait, so that a step of the clock is noticed.
	longestRest = time.Minute
)

func (d *due) run(ctx context.Context) {
	for {
		timer := time.NewTimer(d.rest())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.wake:
			timer.Stop()
		case <-timer.C:
		}
		for _, day := range d.ripe() {
			if err := d.release(ctx, day); err != nil && ctx.Err() == nil {
				d.logger.Error("work that is due could not be handed on, it is tried again", "error", err)
				d.tell(day, d.clock.Now().Add(retryPause))
			}
		}
	}
}

// rest is how long nothing is due.
func (d *due) rest() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := longestRest
	for _, at := range d.next {
		rest = min(rest, at.Sub(d.clock.Now()))
	}
	return max(rest, 0)
}

// ripe takes the days that have work now.
func (d *due) ripe() []fanfare.Day {
	d.mu.Lock()
	defer d.mu.Unlock()
	var days []fanfare.Day
	for day, at := range d.next {
		if !at.After(d.clock.Now()) {
			days = append(days, day)
			delete(d.next, day)
		}
	}
	return days
}

// release publishes what is due of a day, then forgets it. A crash between the
// two publishes it again; the second finds its deliveries attempted.
func (d *due) release(ctx context.Context, day fanfare.Day) error {
	for {
		work, err := d.store.DueBy(ctx, day, d.clock.Now(), dueBatch)
		if err != nil {
			return err
		}
		var cutter generate.Cutter
		for i := range work {
			cutter.AddDue(day, &work[i])
		}
		kit.Step("before-due-publish")
		if err := publish(ctx, d.bus, cutter.Batches()); err != nil {
			return err
		}
		kit.Step("after-due-publish")
		if err := d.store.RemoveDue(ctx, day, work); err != nil {
			return err
		}
		if len(work) < dueBatch {
			return d.learn(ctx, day)
		}
	}
}

// resume puts all held batches back on the bus; what is still paused is held
// again when it is loaded.
func (d *due) resume(ctx context.Context) error {
	days, err := d.store.Days()
	if err != nil {
		return err
	}
	for _, day := range days {
		batches, ids, err := d.store.Held(ctx, day)
		if err != nil {
			return err
		}
		if err := publish(ctx, d.bus, batches); err != nil {
			return err
		}
		if err := d.store.RemoveHeld(ctx, day, ids); err != nil {
			return err
		}
		if err := d.learn(ctx, day); err != nil {
			return err
		}
	}
	return nil
}
