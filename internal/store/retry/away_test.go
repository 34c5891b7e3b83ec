package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

func TestWhileAwayRetriesUntilTheDatabaseIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "no"}, store.ErrAway)
		tries := 0
		err := WhileAway(t.Context(), func() error {
			if tries++; tries <= 20 {
				return gone
			}
			return nil
		})
		if err != nil || tries != 21 {
			t.Errorf("%d tries, and then %v", tries, err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := WhileAway(ctx, func() error { return gone }); !IsAway(err) {
			t.Errorf("at the end: %v", err)
		}
		tries = 0
		err = WhileAway(t.Context(), func() error {
			if tries++; tries <= 20 {
				return &fanfare.Error{Code: fanfare.DiskFull, Message: "no"}
			}
			return nil
		})
		if err != nil || tries != 21 {
			t.Errorf("with a full disk: %d tries, and then %v", tries, err)
		}
		damaged := errors.New("damaged")
		tries = 0
		if err := WhileAway(t.Context(), func() error { tries++; return damaged }); !errors.Is(err, damaged) || tries != 1 {
			t.Errorf("another error was tried %d times: %v", tries, err)
		}
	})
}
