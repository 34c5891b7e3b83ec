package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

func TestFailureLevelOfAStopIsInfo(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want slog.Level
	}{
		{"the context ended", stopped, fmt.Errorf("store: %w", context.Canceled), slog.LevelInfo},
		{"the bus was closed", t.Context(), fmt.Errorf("publish: %w", ErrClosed), slog.LevelInfo},
		{"a full disk during a stop", stopped, errors.New("no space left on device"), slog.LevelError},
		{"a failure", t.Context(), errors.New("no space left on device"), slog.LevelError},
		{"the context of something else ended", t.Context(), context.Canceled, slog.LevelError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := FailureLevel(tt.ctx, tt.err); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
