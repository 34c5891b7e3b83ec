package ingest

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/clock"
)

// trimEvery is how often matched events are removed from EVENTS.
const trimEvery = 5 * time.Minute

// Trim removes events from EVENTS that are matched and older than Horizon, until ctx ends.
// remove removes those before a time.
func Trim(ctx context.Context, remove func(ctx context.Context, before time.Time) error, clock clock.Clock, logger *slog.Logger) {
	ticker := time.NewTicker(trimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := remove(ctx, clock.Now().Add(-Horizon)); err != nil && ctx.Err() == nil {
			logger.Warn("cannot remove old events from the bus; retrying", "error", err)
		}
	}
}
