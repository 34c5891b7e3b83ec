// Package due publishes delayed work to BATCHES when it is due: retries, messages
// that wait for the end of quiet hours or for a rate, and batches that a pause has held.
//
// State. The work is in the store, in the table of each day. The earliest time of each day is
// in memory; the recorder reports it, and each start reads it again.
//
// Failure. Work is published before it is removed from the store, so a crash in between
// publishes it again. The second copy finds its deliveries attempted.
package due

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// readSize is the number of work items that are read at a time.
	readSize = 5000
	// maxSleep limits the wait, so that a clock change is detected.
	maxSleep = time.Minute
)

// Publisher appends batches to the bus.
type Publisher interface {
	Publish(ctx context.Context, batches []fanfare.Batch) error
}

// A Scheduler publishes work that is due. It is safe for concurrent use, except for
// ReleaseHeld, which one goroutine calls at a time.
type Scheduler struct {
	store     *deliveries.Store
	publisher Publisher
	clock     clock.Clock
	logger    *slog.Logger

	mu        sync.Mutex
	next      map[fanfare.Day]time.Time // the earliest work of each day
	published map[fanfare.Day][]int64   // held batches that are published but not removed yet
	wake      chan struct{}
}

// New returns a scheduler that knows of no work.
func New(store *deliveries.Store, publisher Publisher, clock clock.Clock, logger *slog.Logger) *Scheduler {
	return &Scheduler{store: store, publisher: publisher, clock: clock, logger: logger,
		next: map[fanfare.Day]time.Time{}, published: map[fanfare.Day][]int64{}, wake: make(chan struct{}, 1)}
}

// Add notes that a day has work at a time.
func (s *Scheduler) Add(day fanfare.Day, at time.Time) {
	s.mu.Lock()
	known, ok := s.next[day]
	sooner := !ok || at.Before(known)
	if sooner {
		s.next[day] = at
	}
	s.mu.Unlock()
	if sooner {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Load reads the earliest time of a day from the store.
func (s *Scheduler) Load(ctx context.Context, day fanfare.Day) error {
	at, err := s.store.NextDue(ctx, day)
	if err == nil && !at.IsZero() {
		s.Add(day, at)
	}
	return err
}

// Run publishes work until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.untilNext())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
		case <-timer.C:
		}
		for _, day := range s.takeDueDays() {
			if err := s.publishDay(ctx, day); err != nil && ctx.Err() == nil {
				s.logger.Log(ctx, retry.LogLevel(err), "cannot publish due work; retrying", "error", err)
				s.Add(day, s.clock.Now().Add(retry.Pause))
			}
		}
	}
}

// untilNext returns the time until the next work is due.
func (s *Scheduler) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	sleep := maxSleep
	for _, at := range s.next {
		sleep = min(sleep, at.Sub(s.clock.Now()))
	}
	return max(sleep, 0)
}

// takeDueDays removes and returns the days that have work now.
func (s *Scheduler) takeDueDays() []fanfare.Day {
	s.mu.Lock()
	defer s.mu.Unlock()
	var days []fanfare.Day
	for day, at := range s.next {
		if !at.After(s.clock.Now()) {
			days = append(days, day)
			delete(s.next, day)
		}
	}
	return days
}

// publishDay publishes the due work of a day and then removes it from the store.
func (s *Scheduler) publishDay(ctx context.Context, day fanfare.Day) error {
	for {
		work, err := s.store.DueBy(ctx, day, s.clock.Now(), readSize)
		if err != nil {
			return err
		}
		var cutter plan.Batcher
		for i := range work {
			cutter.AddDue(day, &work[i])
		}
		failpoint.Hit("before-due-publish")
		if err := s.publisher.Publish(ctx, cutter.Batches()); err != nil {
			return err
		}
		failpoint.Hit("after-due-publish")
		if err := s.untilWritten(ctx, func() error { return s.store.RemoveDue(ctx, day, work) }); err != nil {
			return err
		}
		if len(work) < readSize {
			return s.Load(ctx, day)
		}
	}
}

// untilWritten repeats a write until it succeeds. The work that it removes is published
// already: starting again would publish it once more each time. It gives up when ctx ends or
// the day has been removed.
func (s *Scheduler) untilWritten(ctx context.Context, write func() error) error {
	for {
		err := write()
		if err == nil || ctx.Err() != nil || fanfare.CodeOf(err) == fanfare.NotFound {
			return err
		}
		s.logger.Log(ctx, retry.LogLevel(err), "cannot remove published work from the store; retrying", "error", err)
		if retry.Sleep(ctx, retry.Pause) != nil {
			return err
		}
	}
}

// ReleaseHeld publishes held batches, except those that are still held. The loader holds
// those parts of a batch again that are still paused. Called again after an error,
// ReleaseHeld publishes nothing twice.
func (s *Scheduler) ReleaseHeld(ctx context.Context, held func(*fanfare.Batch) bool) error {
	days, err := s.store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := s.removePublished(ctx, day); err != nil {
			return err
		}
		batches, ids, err := s.store.Held(ctx, day)
		if err != nil {
			return err
		}
		free := batches[:0]
		var freeIDs []int64
		for i := range batches {
			if !held(&batches[i]) {
				free, freeIDs = append(free, batches[i]), append(freeIDs, ids[i])
			}
		}
		if len(free) == 0 {
			continue
		}
		if err := s.publisher.Publish(ctx, free); err != nil {
			return err
		}
		failpoint.Hit("after-release")
		s.mu.Lock()
		s.published[day] = freeIDs
		s.mu.Unlock()
		if err := s.removePublished(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

// removePublished removes the held batches of a day from the store that are published.
func (s *Scheduler) removePublished(ctx context.Context, day fanfare.Day) error {
	s.mu.Lock()
	ids := s.published[day]
	s.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := s.store.RemoveHeld(ctx, day, ids); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.published, day)
	return nil
}
