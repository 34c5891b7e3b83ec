package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/record"
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

// carryNothing is for days that have no states.
func carryNothing(context.Context, fanfare.Day) error { return nil }

func TestADayThatCannotBeRemovedIsLeftAloneForAWhile(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	days := &dumpedDays{Database: storetest.Open(t), held: errors.New("held")}
	kept := deliveries.New(days)
	recorder := record.Start(record.Options{Store: kept, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	defer recorder.Stop()
	if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: &fanfare.AcceptedEvent{ReceivedAt: now.AddDate(0, 0, -40), Seq: fanfare.NewEventSeq(1, 0)}, KeptAt: now, MatchedAt: now}}, now); err != nil {
		t.Fatal(err)
	}
	clock := &setClock{now}
	x := &indexing{store: kept, recorder: recorder, carry: carryNothing, clock: clock, logger: slog.New(slog.DiscardHandler), retention: 30 * 24 * time.Hour}
	if err := x.expire(t.Context()); !errors.Is(err, days.held) {
		t.Fatalf("got %v", err)
	}
	if err := x.expire(t.Context()); err != nil || days.asked != 1 {
		t.Fatalf("asked %d times, %v", days.asked, err)
	}
	days.held = nil
	clock.now = now.Add(removeAgain)
	if err := x.expire(t.Context()); err != nil {
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

func TestADayThatIsRemovedAfterAMoveDoesNotHoldUpTheIndex(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	days := &waitingDays{Database: storetest.Open(t), asked: make(chan struct{}), over: make(chan struct{})}
	kept := deliveries.New(days)
	recorder := record.Start(record.Options{Store: kept, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	defer recorder.Stop()
	freeze := func(n uint64, at time.Time) {
		if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{{Posted: &fanfare.AcceptedEvent{ReceivedAt: at, Seq: fanfare.NewEventSeq(n, 0)}, KeptAt: now, MatchedAt: now}}, now); err != nil {
			t.Fatal(err)
		}
	}
	freeze(1, now.AddDate(0, 0, -40))
	x := &indexing{store: kept, recorder: recorder, carry: carryNothing, clock: &setClock{now}, logger: slog.New(slog.DiscardHandler), retention: 30 * 24 * time.Hour}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, loop := range []func(context.Context){x.run, x.remove} {
		running.Go(func() { loop(ctx) })
	}
	defer running.Wait()
	defer close(days.over)
	defer stop()
	<-days.asked
	freeze(2, now)
	freeze(3, now)
	for limit := time.After(time.Minute); x.lag.Load() < 3; {
		select {
		case <-limit:
			t.Fatalf("the index is not looked at: lag %d", x.lag.Load())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestADayThatSomethingOfWaitsForADigestIsKept(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	kept := deliveries.New(storetest.Open(t))
	recorder := record.Start(record.Options{Store: kept, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	defer recorder.Stop()
	old, w := fanfare.DayOf(now.AddDate(0, 0, -40)), deliveries.Waiting{Slot: 1, Due: now.AddDate(0, 0, 1), Service: "news"}
	if err := kept.Await(t.Context(), old, []deliveries.Waiting{w}); err != nil {
		t.Fatal(err)
	}
	x := &indexing{store: kept, recorder: recorder, carry: carryNothing, clock: &setClock{now}, logger: slog.New(slog.DiscardHandler), retention: 30 * 24 * time.Hour}
	days := func() int {
		t.Helper()
		if err := x.expire(t.Context()); err != nil {
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
