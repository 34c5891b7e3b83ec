// Package retry repeats work that failed because the database could not be reached, and pauses between attempts. The caller keeps the work
// meanwhile and does not count it as failed. An error other than store.ErrAway is returned at once.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Pause is the time between two attempts.
const Pause = time.Second

// IsAway reports whether err was caused by a database that cannot be reached.
func IsAway(err error) bool { return errors.Is(err, store.ErrAway) }

// IsFull reports whether an error is a full disk.
func IsFull(err error) bool { return fanfare.CodeOf(err) == fanfare.DiskFull }

// WhileAway calls do until it succeeds or returns an error other than store.ErrAway, and returns that result. If ctx ends earlier, it returns
// the last error of do.
// WhileAway calls do again while the database cannot be reached or its disk is full. It retries in place, because the work
// that follows may depend on the order.
func WhileAway(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !IsAway(err) && !IsFull(err) {
			return err
		}
		if Sleep(ctx, Pause) != nil {
			return err
		}
	}
}

// Sleep waits for d and returns nil, or returns the error of ctx if ctx ends earlier.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// LogLevel returns the level at which an error of repeated work is logged. The server reports an unreachable database once, so the repetitions
// need not.
func LogLevel(err error) slog.Level {
	if IsAway(err) {
		return slog.LevelDebug
	}
	return slog.LevelError
}
