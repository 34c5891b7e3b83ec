package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/retry"
)

// A flaky lender is away when it is told to be.
type flaky struct{ since atomic.Pointer[time.Time] }

func (f *flaky) Away() (time.Time, error) {
	if since := f.since.Load(); since != nil {
		return *since, errors.New("connection refused")
	}
	return time.Time{}, nil
}

func (f *flaky) leave() {
	now := time.Now()
	f.since.Store(&now)
}

func TestAnAbsenceIsToldWhenItLastsAndEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &flaky{}
		a := &absence{of: of, clock: clock.System{}}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { a.run(ctx); close(over) }()
		after := func(d time.Duration) error {
			<-time.After(d)
			synctest.Wait()
			return a.check()
		}
		of.leave()
		if err := after(shortAbsence / 2); err != nil {
			t.Errorf("told of a moment: %v", err)
		}
		of.since.Store(nil)
		if err := after(time.Minute); err != nil {
			t.Errorf("nothing is wrong, and it says %v", err)
		}
		of.leave()
		err := after(2 * shortAbsence)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Code != fanfare.Unavailable || e.RetryAfter == 0 || e.Hint == "" || strings.Contains(e.Error(), "refused") {
			t.Errorf("away: %v", err)
		}
		_ = after(10 * time.Second)
		of.since.Store(nil)
		if err := after(absenceLook); err != nil {
			t.Errorf("it is back: %v", err)
		}
		stop()
		<-over
	})
}

func TestWhatFailsSinceTheDatabaseIsAwayIsTriedUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "no"}, store.ErrAway)
		tries := 0
		err := retry.WhileAway(t.Context(), func() error {
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
		if err := retry.WhileAway(ctx, func() error { return gone }); !retry.IsAway(err) {
			t.Errorf("at the end: %v", err)
		}
		damaged := errors.New("damaged")
		tries = 0
		if err := retry.WhileAway(t.Context(), func() error { tries++; return damaged }); !errors.Is(err, damaged) || tries != 1 {
			t.Errorf("what is damaged was tried %d times: %v", tries, err)
		}
	})
}

// Who looks just when the database is back is told one thing or the other.
func TestWhoLooksWhileAnAbsenceEndsIsAnswered(t *testing.T) {
	a, over := &absence{}, make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		defer close(over)
		for range 300_000 {
			if why, away := errors.AsType[*fanfare.Error](a.told()); away && (why.Message != "away" || !strings.Contains(why.Hint, "by itself")) {
				t.Errorf("told %+v", why)
				return
			}
		}
	})
	defer looking.Wait()
	for {
		select {
		case <-over:
			return
		default:
			a.why.Store(&fanfare.Error{Code: fanfare.Unavailable, Message: "away"})
			a.why.Store(nil)
		}
	}
}
