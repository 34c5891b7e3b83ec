package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// indexing builds the history behind the hot path, and removes days that are
// older than the retention.
type indexing struct {
	store     *deliveries.Store
	recorder  *record.Recorder
	carry     func(context.Context, fanfare.Day) error // takes what outlives a day
	clock     clock.Clock
	logger    *slog.Logger
	retention time.Duration
	lag       atomic.Int64 // events that are in no run yet
	next      time.Time    // before it no day is removed
}

const (
	// indexEvery is how often the lag is looked at.
	indexEvery = 500 * time.Millisecond
	// indexAtLeast is how many events make a run at once; fewer wait for
	// indexPatience. A person's history reads what is in no run from the
	// manifests, a few microseconds each.
	indexAtLeast  = 1000
	indexPatience = 30 * time.Second
	// removeEvery is how often days are looked for that are too old.
	removeEvery = time.Minute
	// removeAgain is how long a day is left alone that could not be removed: who
	// dumps a database holds all its days for as long as that takes.
	removeAgain = 10 * time.Minute
)

func (x *indexing) run(ctx context.Context) {
	ticker := time.NewTicker(indexEvery)
	defer ticker.Stop()
	waited := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		waited += indexEvery
		lag, err := x.measure(ctx)
		if err == nil && (lag >= indexAtLeast || waited >= indexPatience) {
			waited = 0
			err = x.index(ctx)
		}
		if err != nil && ctx.Err() == nil {
			x.logger.Log(ctx, retry.LogLevel(err), "the history could not be indexed, it is tried again", "error", err)
		}
	}
}

// remove removes days beside the index, for it waits: for the end of a move, and
// for who reads the day.
func (x *indexing) remove(ctx context.Context) {
	ticker := time.NewTicker(removeEvery)
	defer ticker.Stop()
	for {
		if err := x.expire(ctx); err != nil && ctx.Err() == nil {
			x.logger.Log(ctx, retry.LogLevel(err), "old days stay for now", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// merge keeps the runs few. It works beside the index, which must not lag behind
// while millions of entries are merged.
func (x *indexing) merge(ctx context.Context) {
	ticker := time.NewTicker(indexEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		days, err := x.recent(ctx)
		for _, day := range days {
			for merged := true; merged && err == nil; {
				merged, err = x.store.MergeHistory(ctx, day)
			}
		}
		if err != nil && ctx.Err() == nil && fanfare.CodeOf(err) != fanfare.NotFound { // the day may have been removed
			x.logger.Log(ctx, retry.LogLevel(err), "the history could not be merged, it is tried again", "error", err)
		}
	}
}

// sweep removes what a crash left of runs that were being written.
func (x *indexing) sweep(ctx context.Context) error {
	days, err := x.recent(ctx)
	for _, day := range days {
		err = errors.Join(err, x.store.SweepHistory(ctx, day))
	}
	return err
}

// recentDays is how many of the newest days events may still come for.
const recentDays = 2

// recent are the days whose events may still come.
func (x *indexing) recent(ctx context.Context) ([]fanfare.Day, error) {
	days, err := x.store.Days(ctx)
	return days[:min(recentDays, len(days))], err
}

func (x *indexing) measure(ctx context.Context) (int64, error) {
	days, err := x.recent(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, day := range days {
		lag, err := x.store.HistoryLag(ctx, day)
		if err != nil {
			return 0, err
		}
		sum += lag
	}
	x.lag.Store(sum)
	return sum, nil
}

func (x *indexing) index(ctx context.Context) error {
	days, err := x.recent(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		for {
			n, err := x.store.IndexHistory(ctx, day)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	_, err = x.measure(ctx)
	return err
}

// expire removes the days that are older than the retention and over: events
// outlive every retry and all that is paused or parked.
func (x *indexing) expire(ctx context.Context) error {
	if x.clock.Now().Before(x.next) {
		return nil
	}
	days, err := x.store.Days(ctx)
	if err != nil {
		return err
	}
	oldest := fanfare.DayOf(x.clock.Now().Add(-x.retention))
	for _, day := range days {
		if day >= oldest {
			continue
		}
		over, err := x.over(ctx, day)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		x.logger.Info("a day is older than the retention and is removed", "day", day.String())
		err = x.carry(ctx, day)
		if err == nil {
			err = x.store.Remove(ctx, day)
		}
		if err != nil {
			x.next = x.clock.Now().Add(removeAgain)
			return fmt.Errorf("the day %s could not be removed, it is tried again after %s: %w", day, removeAgain, err)
		}
	}
	return nil
}

// over reports whether nothing of a day is open or parked, waits for a digest, or is
// still to be told to its service.
func (x *indexing) over(ctx context.Context, day fanfare.Day) (bool, error) {
	for _, ref := range x.recorder.Open(math.MaxInt) {
		if ref.Day == day {
			return false, nil
		}
	}
	parked, _, err := x.store.Parked(ctx, day)
	if err != nil || len(parked) > 0 {
		return false, err
	}
	waiting, err := x.store.Pending(ctx, day)
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	untold, _, err := x.store.WaitingNotices(ctx, day)
	return untold == 0, err
}
