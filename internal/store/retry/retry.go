// Package retry repeats work that failed because the database was away, and pauses between
// attempts. The work stays with its caller meanwhile and does not count as failed.
//
// State. None.
//
// Failure. An error other than store.ErrAway is returned at once.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// Pause is the time between two attempts at work that failed.
const Pause = time.Second

// IsAway reports whether err says that the database cannot be reached.
func IsAway(err error) bool { return errors.Is(err, store.ErrAway) }

// WhileAway calls do until it returns an error other than store.ErrAway, or nil, and returns
// that. When ctx ends it returns the last error of do.
func WhileAway(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !IsAway(err) {
			return err
		}
		if Sleep(ctx, Pause) != nil {
			return err
		}
	}
}

// Sleep waits for d and returns nil, or returns the error of ctx if ctx ends before.
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

// LogLevel returns the level at which an error of work that is repeated is logged. The server
// reports once that the database is away, so that each repetition need not.
func LogLevel(err error) slog.Level {
	if IsAway(err) {
		return slog.LevelDebug
	}
	return slog.LevelError
}
