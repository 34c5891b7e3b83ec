package maintain

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// dumpedDays is a database whose days are held by somebody for a while.
type dumpedDays struct {
	store.Database
	asked int
	held  error
}

func (d *dumpedDays) RemoveDay(ctx context.Context, of fanfare.Day) error {
	d.asked++
	if d.held != nil {
		return d.held
	}
	return d.Database.RemoveDay(ctx, of)
}

// fixedClock is set by the test.
type fixedClock struct{ now time.Time }

func (c *fixedClock) Now() time.Time { return c.now }

// newRetention keeps days for 30 days.
func newRetention(kept *deliveries.Store, open []fanfare.EventRef, archive func(context.Context, fanfare.Day) error, clock clock.Clock) *Retention {
	return NewRetention(RetentionOptions{Store: kept, Open: func(int) []fanfare.EventRef { return open }, Archive: archive, Age: 30 * 24 * time.Hour, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
}

// archiveNothing is for days that have no states.
func archiveNothing(context.Context, fanfare.Day) error { return nil }

func TestRetentionPausesAfterADayCannotBeRemoved(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	days := &dumpedDays{Database: storetest.Open(t), held: errors.New("held")}
	kept := deliveries.New(days)
	if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: &fanfare.AcceptedEvent{ReceivedAt: now.AddDate(0, 0, -40), Seq: fanfare.NewEventSeq(1, 0)}, KeptAt: now, MatchedAt: now}}, now); err != nil {
		t.Fatal(err)
	}
	clock := &fixedClock{now}
	r := newRetention(kept, nil, archiveNothing, clock)
	if err := r.removeOld(t.Context()); !errors.Is(err, days.held) {
		t.Fatalf("got %v", err)
	}
	if err := r.removeOld(t.Context()); err != nil || days.asked != 1 {
		t.Fatalf("asked %d times, %v", days.asked, err)
	}
	days.held = nil
	clock.now = now.Add(removePause)
	if err := r.removeOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := kept.Days(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// waitingDays is a database whose days are removed when a move has ended.
type waitingDays struct {
	store.Database
	asked, over chan struct{}
}

func (d *waitingDays) RemoveDay(context.Context, fanfare.Day) error {
	close(d.asked)
	<-d.over
	return errors.New("the server is stopping")
}

func TestHistoryIsIndexedWhileARemovalWaits(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	days := &waitingDays{Database: storetest.Open(t), asked: make(chan struct{}), over: make(chan struct{})}
	kept := deliveries.New(days)
	freeze := func(n uint64, at time.Time) {
		if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: &fanfare.AcceptedEvent{ReceivedAt: at, Seq: fanfare.NewEventSeq(n, 0)}, KeptAt: now, MatchedAt: now}}, now); err != nil {
			t.Fatal(err)
		}
	}
	freeze(1, now.AddDate(0, 0, -40))
	r := newRetention(kept, nil, archiveNothing, &fixedClock{now})
	h := NewHistory(kept, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, loop := range []func(context.Context){h.Index, r.Run} {
		running.Go(func() { loop(ctx) })
	}
	defer running.Wait()
	defer close(days.over)
	defer stop()
	<-days.asked
	freeze(2, now)
	freeze(3, now)
	for limit := time.After(time.Minute); h.Lag() < 3; {
		select {
		case <-limit:
			t.Fatalf("the index is not looked at: lag %d", h.Lag())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestRetentionKeepsADayWithWaitingDigests(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	kept := deliveries.New(storetest.Open(t))
	old, w := fanfare.DayOf(now.AddDate(0, 0, -40)), deliveries.Waiting{Slot: 1, Due: now.AddDate(0, 0, 1), Service: "news"}
	if err := kept.Await(t.Context(), old, []deliveries.Waiting{w}); err != nil {
		t.Fatal(err)
	}
	r := newRetention(kept, nil, archiveNothing, &fixedClock{now})
	days := func() int {
		t.Helper()
		if err := r.removeOld(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, err := kept.Days(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	if n := days(); n != 1 {
		t.Errorf("%d days are left while something waits", n)
	}
	if err := kept.EndAwait(t.Context(), old, w); err != nil {
		t.Fatal(err)
	}
	if n := days(); n != 0 {
		t.Errorf("%d days are left when nothing waits", n)
	}
}

func TestRetentionRemovesOldFinishedDays(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	kept := deliveries.New(storetest.Open(t))
	freeze := func(daysAgo int) fanfare.EventRef {
		t.Helper()
		posted := &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: now.Add(-time.Duration(daysAgo) * 24 * time.Hour), Seq: fanfare.NewEventSeq(uint64(100-daysAgo), 0)}
		if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: posted, Messages: 1, KeptAt: now, MatchedAt: now}}, now); err != nil {
			t.Fatal(err)
		}
		return posted.Ref()
	}
	over, open, parked, recent := freeze(40), freeze(41), freeze(42), freeze(30)
	if err := kept.Park(t.Context(), parked.Day, parked.Seq, fanfare.Parked{Kind: fanfare.ParkedEvents, At: now}, nil); err != nil {
		t.Fatal(err)
	}
	r := newRetention(kept, []fanfare.EventRef{open}, archiveNothing, &fixedClock{now})
	check := func(want ...fanfare.Day) {
		t.Helper()
		if err := r.removeOld(t.Context()); err != nil {
			t.Fatal(err)
		}
		if days, err := kept.Days(t.Context()); err != nil || !slices.Equal(days, want) {
			t.Errorf("left are %v (%v), want %v; %v was over", days, err, want, over.Day)
		}
	}
	check(recent.Day, open.Day, parked.Day)
	r.Open = func(int) []fanfare.EventRef { return nil }
	check(recent.Day, parked.Day)
}

// A message that was scheduled for a year later was sent an hour ago: its outcome can be traced
// although its day is much older than the retention.
func TestRetentionKeepsADayForHalfOfItsAgeAfterItsLastBroadcast(t *testing.T) {
	sent := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	received := sent.AddDate(-1, 0, 0)
	kept := deliveries.New(storetest.Open(t))
	seq := fanfare.NewEventSeq(1, 0)
	if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: &fanfare.AcceptedEvent{ReceivedAt: received, Seq: seq}, KeptAt: received, MatchedAt: received}}, received); err != nil {
		t.Fatal(err)
	}
	completed := fanfare.Completion{Seq: seq, Progress: fanfare.Progress{First: sent, Last: sent, Completed: sent}}
	if err := kept.Commit(t.Context(), fanfare.DayOf(received), &fanfare.Commit{Completions: []fanfare.Completion{completed}}); err != nil {
		t.Fatal(err)
	}
	clock := &fixedClock{sent.Add(time.Hour)}
	r := newRetention(kept, nil, archiveNothing, clock)
	for _, test := range []struct {
		at   time.Time
		left int
	}{
		{sent.Add(time.Hour), 1}, {sent.AddDate(0, 0, 14), 1}, {sent.AddDate(0, 0, 15), 0},
	} {
		clock.now = test.at
		if err := r.removeOld(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, err := kept.Days(t.Context()); err != nil || len(left) != test.left {
			t.Errorf("%v after the message was sent, %d days are left, want %d (%v)", test.at.Sub(sent), len(left), test.left, err)
		}
	}
}
