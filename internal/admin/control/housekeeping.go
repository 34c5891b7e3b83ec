package control

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/people/registry"
)

// housekeepingEvery is the interval at which the control tables are cleaned up.
const housekeepingEvery = 15 * time.Minute

// Housekeeping deletes old entries of the audit and expired suppressions, and stores when keys were last used.
type Housekeeping struct {
	Registry *registry.Registry
	Clock    clock.Clock
	Logger   *slog.Logger
	AuditAge time.Duration // how long entries of the audit are retained
}

// Run cleans up every housekeepingEvery until ctx ends, and stores the use of keys once more then.
func (h *Housekeeping) Run(ctx context.Context) {
	ticker := time.NewTicker(housekeepingEvery)
	defer ticker.Stop()
	for {
		if err := h.Registry.TrimAudit(ctx, h.Clock.Now().Add(-h.AuditAge)); err != nil && ctx.Err() == nil {
			h.Logger.Warn("cannot delete old audit entries; retrying", "error", err)
		}
		if err := h.Registry.TrimSuppressions(ctx); err != nil && ctx.Err() == nil {
			h.Logger.Warn("cannot delete expired suppressions; retrying", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		if err := h.Registry.StoreKeyUses(context.WithoutCancel(ctx)); err != nil {
			h.Logger.Warn("cannot store the last use of keys", "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
