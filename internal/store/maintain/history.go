package maintain

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// checkInterval is how often the lag of the index is measured.
	checkInterval = 500 * time.Millisecond
	// minRunEvents is the number of events that are indexed at once; fewer wait for
	// maxRunWait. The history of a person reads events that are not indexed from their
	// manifests, which takes a few microseconds each.
	minRunEvents = 1000
	maxRunWait   = 30 * time.Second
)

// History indexes the deliveries of recent days by person, behind the pipeline.
type History struct {
	store  *deliveries.Store
	logger *slog.Logger
	lag    atomic.Int64
}

// NewHistory returns a History. Call Sweep before its loops.
func NewHistory(store *deliveries.Store, logger *slog.Logger) *History {
	return &History{store: store, logger: logger}
}

// Lag returns the number of events that are not indexed yet.
func (h *History) Lag() int64 { return h.lag.Load() }

// Sweep removes the incomplete runs that a crash left.
func (h *History) Sweep(ctx context.Context) error {
	days, err := h.recent(ctx)
	for _, day := range days {
		err = errors.Join(err, h.store.SweepHistory(ctx, day))
	}
	return err
}

// Index indexes new events until ctx ends.
func (h *History) Index(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	waited := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		waited += checkInterval
		lag, err := h.measure(ctx)
		if err == nil && (lag >= minRunEvents || waited >= maxRunWait) {
			waited = 0
			err = h.index(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.logger.Log(ctx, retry.LogLevel(err), "the history could not be indexed; retrying", "error", err)
		}
	}
}

// Merge merges the runs of the index until ctx ends, so that they stay few. It runs beside
// Index, which must not lag behind while millions of entries are merged.
func (h *History) Merge(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		days, err := h.recent(ctx)
		for _, day := range days {
			for merged := true; merged && err == nil; {
				merged, err = h.store.MergeHistory(ctx, day)
			}
		}
		if err != nil && ctx.Err() == nil && fanfare.CodeOf(err) != fanfare.NotFound { // the day may have been removed
			h.logger.Log(ctx, retry.LogLevel(err), "the segments of the history index could not be merged; retrying", "error", err)
		}
	}
}

// recent returns the days for which events may still arrive.
func (h *History) recent(ctx context.Context) ([]fanfare.Day, error) {
	days, err := h.store.Days(ctx)
	return days[:min(recentDays, len(days))], err
}

func (h *History) measure(ctx context.Context) (int64, error) {
	days, err := h.recent(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, day := range days {
		lag, err := h.store.HistoryLag(ctx, day)
		if err != nil {
			return 0, err
		}
		sum += lag
	}
	h.lag.Store(sum)
	return sum, nil
}

func (h *History) index(ctx context.Context) error {
	days, err := h.recent(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		for {
			n, err := h.store.IndexHistory(ctx, day)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	_, err = h.measure(ctx)
	return err
}
