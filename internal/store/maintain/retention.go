package maintain

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// removeInterval is how often the retention looks for days that are too old.
	removeInterval = time.Minute
	// removePause is the pause after a day could not be removed, for example because a dump of the database locks all days until it ends.
	removePause = 10 * time.Minute
)

// RetentionOptions are the components that a Retention needs.
type RetentionOptions struct {
	Store *deliveries.Store
	// Open lists open broadcasts, at most so many.
	Open func(limit int) []fanfare.EventRef
	// Archive copies the data of a day that outlive it.
	Archive func(context.Context, fanfare.Day) error
	Age     time.Duration // for how long days are kept
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Retention removes days that are older than the retention and have no work left. Outcomes can
// be traced for at least half of the retention: a day whose last broadcast was scheduled for a
// later time stays for that long after it was completed.
type Retention struct {
	RetentionOptions
	pausedUntil time.Time
	keepUntil   map[fanfare.Day]time.Time // finished days whose broadcasts were completed late
}

// NewRetention returns a Retention.
func NewRetention(o RetentionOptions) *Retention {
	return &Retention{RetentionOptions: o, keepUntil: map[fanfare.Day]time.Time{}}
}

// Run removes days until ctx ends. It runs beside the index, because a removal waits for the
// end of a database move and for readers of the day.
func (r *Retention) Run(ctx context.Context) {
	ticker := time.NewTicker(removeInterval)
	defer ticker.Stop()
	for {
		if err := r.removeOld(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Log(ctx, retry.LogLevel(err), "old days could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// removeOld removes the days that are older than the retention and finished.
func (r *Retention) removeOld(ctx context.Context) error {
	if r.Clock.Now().Before(r.pausedUntil) {
		return nil
	}
	days, err := r.Store.Days(ctx)
	if err != nil {
		return err
	}
	oldest := fanfare.DayOf(r.Clock.Now().Add(-r.Age))
	for _, day := range days {
		if day >= oldest {
			continue
		}
		finished, err := r.finished(ctx, day)
		if err != nil {
			return err
		}
		if !finished {
			delete(r.keepUntil, day)
			continue
		}
		if traced, err := r.traced(ctx, day); err != nil {
			return err
		} else if traced {
			continue
		}
		r.Logger.Info("removing the data of a day that is older than the retention period", "day", day.String())
		err = r.Archive(ctx, day)
		if err == nil {
			err = r.Store.Remove(ctx, day)
		}
		delete(r.keepUntil, day)
		if err != nil {
			r.pausedUntil = r.Clock.Now().Add(removePause)
			return fmt.Errorf("the data of %s could not be removed; retrying in %s: %w", day, removePause, err)
		}
	}
	return nil
}

// traced reports whether a finished day stays, because one of its broadcasts was completed
// less than half of the retention ago.
func (r *Retention) traced(ctx context.Context, day fanfare.Day) (bool, error) {
	until, known := r.keepUntil[day]
	if !known {
		last, err := r.Store.LastCompletion(ctx, day)
		if err != nil {
			return false, err
		}
		until = last.Add(r.Age / 2)
		r.keepUntil[day] = until
	}
	return r.Clock.Now().Before(until), nil
}

// finished reports whether no broadcast of a day is open or parked, no event waits for a
// digest, and no outcome is still to be reported to its service.
func (r *Retention) finished(ctx context.Context, day fanfare.Day) (bool, error) {
	for _, ref := range r.Open(math.MaxInt) {
		if ref.Day == day {
			return false, nil
		}
	}
	parked, _, err := r.Store.Parked(ctx, day)
	if err != nil || len(parked) > 0 {
		return false, err
	}
	waiting, err := r.Store.Pending(ctx, day)
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	unreported, _, err := r.Store.WaitingNotices(ctx, day)
	return unreported == 0, err
}
