package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// due hands work that waits for its time back to the bus. It knows the earliest
// time of each day's file; the work itself is in the store.
type due struct {
	store  *deliveries.Store
	bus    *bus.Bus
	clock  clock.Clock
	logger *slog.Logger

	mu   sync.Mutex
	next map[fanfare.Day]time.Time
	off  map[fanfare.Day][]int64 // held batches that are on the bus again and still have to be taken off
	wake chan struct{}
}

func newDue(store *deliveries.Store, b *bus.Bus, clock clock.Clock, logger *slog.Logger) *due {
	return &due{store: store, bus: b, clock: clock, logger: logger, next: map[fanfare.Day]time.Time{}, off: map[fanfare.Day][]int64{}, wake: make(chan struct{}, 1)}
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
				d.logger.Log(ctx, retry.LogLevel(err), "work that is due could not be handed on, it is tried again", "error", err)
				d.tell(day, d.clock.Now().Add(retry.Pause))
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
		var cutter plan.Cutter
		for i := range work {
			cutter.AddDue(day, &work[i])
		}
		failpoint.Hit("before-due-publish")
		if err := publish(ctx, d.bus, cutter.Batches()); err != nil {
			return err
		}
		failpoint.Hit("after-due-publish")
		if err := d.insist(ctx, func() error { return d.store.RemoveDue(ctx, day, work) }); err != nil {
			return err
		}
		if len(work) < dueBatch {
			return d.learn(ctx, day)
		}
	}
}

// insist repeats a write until it is kept, since what it takes off is on the bus
// already: to begin again would publish the same once more each time. A day that
// is gone does not come back.
func (d *due) insist(ctx context.Context, write func() error) error {
	for {
		err := write()
		if err == nil || ctx.Err() != nil || fanfare.CodeOf(err) == fanfare.NotFound {
			return err
		}
		d.logger.Log(ctx, retry.LogLevel(err), "work that was handed on could not be taken off, it is tried again", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retry.Pause):
		}
	}
}

// Resume puts held batches back on the bus, all but those that are held still. Of
// one that is in part, that is held again when it is loaded. Called again after it
// failed, it publishes nothing twice.
func (d *due) Resume(ctx context.Context, held func(*fanfare.Batch) bool) error {
	days, err := d.store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := d.takeOff(ctx, day); err != nil {
			return err
		}
		batches, ids, err := d.store.Held(ctx, day)
		if err != nil {
			return err
		}
		free := batches[:0]
		var off []int64
		for i := range batches {
			if !held(&batches[i]) {
				free, off = append(free, batches[i]), append(off, ids[i])
			}
		}
		if len(free) == 0 {
			continue
		}
		if err := publish(ctx, d.bus, free); err != nil {
			return err
		}
		failpoint.Hit("after-release")
		d.mu.Lock()
		d.off[day] = off
		d.mu.Unlock()
		if err := d.takeOff(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

// takeOff forgets held batches of a day that are on the bus again.
func (d *due) takeOff(ctx context.Context, day fanfare.Day) error {
	d.mu.Lock()
	ids := d.off[day]
	d.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := d.store.RemoveHeld(ctx, day, ids); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.off, day)
	return nil
}
