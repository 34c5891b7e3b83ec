package due

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// fullDatabase refuses some writes because its disk is full.
type fullDatabase struct {
	store.Database
	refused *atomic.Int32 // writes that are refused
}

func (f fullDatabase) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	part, err := f.Database.Day(ctx, of, create)
	return fullPart{part, f.refused}, err
}

type fullPart struct {
	store.Part
	refused *atomic.Int32
}

func (f fullPart) Write(ctx context.Context, fn func(store.Session) error) error {
	if f.refused.Add(-1) >= 0 {
		return &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	}
	return f.Part.Write(ctx, fn)
}

// open returns a store whose writes can be refused, with an event of today, and a bus.
func open(t *testing.T) (db fullDatabase, kept *deliveries.Store, hops *bus.Bus, event *fanfare.MatchResult) {
	t.Helper()
	db = fullDatabase{storetest.Open(t), new(atomic.Int32)}
	kept = deliveries.New(db)
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hops.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	event = &fanfare.MatchResult{Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: now, Seq: fanfare.NewEventSeq(7, 0)}}
	if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{event}, now); err != nil {
		t.Fatal(err)
	}
	return db, kept, hops, event
}

func hasOneBatch(t *testing.T, hops *bus.Bus) {
	t.Helper()
	if backlog, err := hops.Backlog(t.Context()); err != nil || backlog.Batches != 1 {
		t.Errorf("%+v on the bus (%v), want one batch", backlog, err)
	}
}

func TestDueWorkIsPublishedOnceWhenItsRemovalFails(t *testing.T) {
	db, kept, hops, event := open(t)
	now, day := event.Posted.ReceivedAt, fanfare.DayOf(event.Posted.ReceivedAt)
	work := fanfare.Due{At: now.Add(-time.Minute).Truncate(time.Second), Channel: 1, Lane: fanfare.Normal,
		Slice: fanfare.RecipientRange{Manifest: fanfare.NewManifestID(event.Posted.Seq, 0), Positions: []uint32{3}, Attempt: 2}}
	if err := kept.Commit(t.Context(), day, &fanfare.Commit{Dues: []fanfare.Due{work}}); err != nil {
		t.Fatal(err)
	}
	db.refused.Store(2)
	if err := New(kept, hops, clock.System{}, slog.New(slog.DiscardHandler)).publishDay(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	hasOneBatch(t, hops)
	if left, err := kept.DueBy(t.Context(), day, now, 10); err != nil || len(left) > 0 {
		t.Errorf("%d pieces of work are left (%v)", len(left), err)
	}
}

func TestHeldBatchesAreReleasedOnceWhenTheirRemovalFails(t *testing.T) {
	db, kept, hops, event := open(t)
	day := fanfare.DayOf(event.Posted.ReceivedAt)
	held := fanfare.Batch{Day: day, Channel: 1, Lane: fanfare.Normal, Slices: []fanfare.RecipientRange{{Manifest: fanfare.NewManifestID(event.Posted.Seq, 0), Positions: []uint32{3}, Attempt: 1}}}
	if err := kept.Hold(t.Context(), &held); err != nil {
		t.Fatal(err)
	}
	s := New(kept, hops, clock.System{}, slog.New(slog.DiscardHandler))
	db.refused.Store(2)
	for range 2 {
		if err := s.ReleaseHeld(t.Context(), func(*fanfare.Batch) bool { return false }); fanfare.CodeOf(err) != fanfare.DiskFull {
			t.Errorf("got %v", err)
		}
	}
	if err := s.ReleaseHeld(t.Context(), func(*fanfare.Batch) bool { return false }); err != nil {
		t.Fatal(err)
	}
	hasOneBatch(t, hops)
	if left, _, err := kept.Held(t.Context(), day); err != nil || len(left) > 0 {
		t.Errorf("%d batches are left (%v)", len(left), err)
	}
}

// fixedClock is set by the test.
type fixedClock struct{ now time.Time }

func (c *fixedClock) Now() time.Time { return c.now }

func TestSchedulerWakesForTheEarliestWork(t *testing.T) {
	clock := &fixedClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	s := New(nil, nil, clock, nil)
	if got := s.untilNext(); got != maxSleep {
		t.Errorf("with nothing to do it waits %v, want %v", got, maxSleep)
	}
	s.Add(1, clock.now.Add(10*time.Second))
	s.Add(2, clock.now.Add(20*time.Second))
	<-s.wake
	s.Add(1, clock.now.Add(30*time.Second)) // later than what is known
	select {
	case <-s.wake:
		t.Error("woken for something later")
	default:
	}
	if got := s.untilNext(); got != 10*time.Second {
		t.Errorf("it waits %v, want 10 s", got)
	}
	s.Add(2, clock.now.Add(5*time.Second))
	<-s.wake
	if got := s.untilNext(); got != 5*time.Second {
		t.Errorf("it waits %v, want 5 s", got)
	}
	if got := s.takeDueDays(); got != nil {
		t.Errorf("due too early: %v", got)
	}
	clock.now = clock.now.Add(10 * time.Second)
	if got := s.untilNext(); got != 0 {
		t.Errorf("it waits %v while work waits", got)
	}
	got := s.takeDueDays()
	slices.Sort(got)
	if !slices.Equal(got, []fanfare.Day{1, 2}) {
		t.Errorf("due are %v, want 1 and 2", got)
	}
	if got := s.takeDueDays(); got != nil {
		t.Errorf("due twice: %v", got)
	}
}
