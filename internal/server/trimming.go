package server

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

// trim forgets events that are matched and older than intake needs to know.
func trim(ctx context.Context, hops *bus.Bus, clock clock.Clock, log *slog.Logger) {
	ticker := time.NewTicker(5 * time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := hops.TrimEvents(ctx, clock.Now().Add(-ingest.Horizon)); err != nil && ctx.Err() == nil {
			log.Warn("old events could not be forgotten, it is tried again", "error", err)
		}
	}
}
