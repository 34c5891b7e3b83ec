package app

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// indexing builds the history behind the hot path, and removes days that are
// older than the retention.
type indexing struct {
	store     *sqlite.Deliveries
	recorder  *record.Recorder
	clock     kit.Clock
	logger    *slog.Logger
	retention time.Duration
	lag       atomic.Int64 // events that are in no run yet
}

const (
	// indexEvery is how often the lag is looked at.
	indexEvery = 500 * time.Millisecond
	// indexAtLeast is how many events make a run at once; fewer wait for
	// indexPatience. A person's history reads what is in no run from the
	// manifests, a few microseconds each.
	indexAtLeast  = 1000
	indexPatience = 30 * time.Second
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
		if err == nil {
			err = x.expire(ctx)
		}
		if err != nil && ctx.Err() == nil {
			x.logger.Error("the history could not be indexed, it is tried again", "error", err)
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
		days, err := x.recent()
		for _, day := range days {
			for merged := true; merged && err == nil; {
				merged, err = x.store.MergeHistory(ctx, day)
			}
		}
		if err != nil && ctx.Err() == nil && fanfare.CodeOf(err) != fanfare.NotFound { // the day may have been removed
			x.logger.Error("the history could not be merged, it is tried again", "error", err)
		}
	}
}

// sweep removes what a crash left of runs that were being written.
func (x *indexing) sweep(ctx context.Context) error {
	days, err := x.recent()
	for _, day := range days {
		err = errors.Join(err, x.store.SweepHistory(ctx, day))
	}
	return err
}

// recent are the days whose events may still come.
func (x *indexing) recent() ([]fanfare.Day, error) {
	days, err := x.store.Days()
	return days[:min(2, len(days))], err
}

func (x *indexing) measure(ctx context.Context) (int64, error) {
	days, err := x.recent()
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
	days, err := x.recent()
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
	days, err := x.store.Days()
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
		if err := x.store.Remove(day); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether nothing of a day is open or parked.
func (x *indexing) over(ctx context.Context, day fanfare.Day) (bool, error) {
	for _, ref := range x.recorder.Open(math.MaxInt) {
		if ref.Day == day {
			return false, nil
		}
	}
	parked, _, err := x.store.Parked(ctx, day)
	return len(parked) == 0, err
}
