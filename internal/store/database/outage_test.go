package database

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

// A flaky database is away after leave.
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

func TestOutageIsReportedAfterASecondAndEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &flaky{}
		a := &Outage{db: of, clock: clock.System{}}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { a.Run(ctx); close(over) }()
		after := func(d time.Duration) error {
			<-time.After(d)
			synctest.Wait()
			return a.Err()
		}
		of.leave()
		if err := after(reportAfter / 2); err != nil {
			t.Errorf("a short outage is reported: %v", err)
		}
		of.since.Store(nil)
		if err := after(time.Minute); err != nil {
			t.Errorf("no outage, and the error is %v", err)
		}
		of.leave()
		err := after(2 * reportAfter)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Code != fanfare.Unavailable || e.RetryAfter == 0 || e.Hint == "" || strings.Contains(e.Error(), "refused") {
			t.Errorf("away: %v", err)
		}
		_ = after(10 * time.Second)
		of.since.Store(nil)
		if err := after(outagePoll); err != nil {
			t.Errorf("it is back: %v", err)
		}
		stop()
		<-over
	})
}

func TestReadinessIsConsistentWhileAnOutageEnds(t *testing.T) {
	a, over := &Outage{}, make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		defer close(over)
		for range 300_000 {
			if why, away := errors.AsType[*fanfare.Error](a.readyError()); away && (why.Message != "away" || !strings.Contains(why.Hint, "resumes processing")) {
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
			a.err.Store(&fanfare.Error{Code: fanfare.Unavailable, Message: "away"})
			a.err.Store(nil)
		}
	}
}
