package sessionlog

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/store/retry"
)

// removeInterval is how often Retention removes old sessions.
const removeInterval = 10 * time.Minute

// Retention removes sessions that ended longer than Age ago, with their requests and responses.
type Retention struct {
	Log    session.Log
	Age    time.Duration // 0: they stay
	Clock  clock.Clock
	Logger *slog.Logger
}

// Run removes sessions until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	ticker := time.NewTicker(removeInterval)
	defer ticker.Stop()
	for {
		if err := r.Remove(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Log(ctx, retry.LogLevel(err), "cannot remove old sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Remove removes the sessions that are too old now.
func (r *Retention) Remove(ctx context.Context) error {
	if r.Age == 0 {
		return nil
	}
	return r.Log.RemoveEnded(ctx, r.Clock.Now().Add(-r.Age))
}
