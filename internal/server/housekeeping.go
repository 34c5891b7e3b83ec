package server

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/registry"
)

// housekeepingEvery is how often the control store is tidied: the use of keys is
// kept, and old lines of the audit and suppressions whose time is over go.
const housekeepingEvery = 15 * time.Minute

type housekeeping struct {
	registry *registry.Registry
	clock    clock.Clock
	log      *slog.Logger
	audit    time.Duration // for how long its lines are kept
}

// run tidies now and then until ctx ends, and once more then.
func (h *housekeeping) run(ctx context.Context) {
	ticker := time.NewTicker(housekeepingEvery)
	defer ticker.Stop()
	for {
		if err := h.registry.TrimAudit(ctx, h.clock.Now().Add(-h.audit)); err != nil && ctx.Err() == nil {
			h.log.Warn("old lines of the audit could not be removed, it is tried again", "error", err)
		}
		if err := h.registry.TrimSuppressions(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("suppressions whose time is over could not be removed, it is tried again", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		if err := h.registry.KeepUses(context.WithoutCancel(ctx)); err != nil {
			h.log.Warn("when keys were used last could not be kept", "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
