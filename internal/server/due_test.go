package server

import (
	"context"
	"log/slog"
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

// full is a database whose disk is full for some writes.
type full struct {
	store.Database
	writes *atomic.Int32 // that are refused
}

func (f full) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	part, err := f.Database.Day(ctx, of, create)
	return fullPart{part, f.writes}, err
}

type fullPart struct {
	store.Part
	writes *atomic.Int32
}

func (f fullPart) Write(ctx context.Context, fn func(store.Session) error) error {
	if f.writes.Add(-1) >= 0 {
		return &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	}
	return f.Part.Write(ctx, fn)
}

// workshop is a store whose writes may be refused, with an event of today in it,
// and a bus.
func workshop(t *testing.T) (db full, kept *deliveries.Store, hops *bus.Bus, event *fanfare.MatchResult) {
	t.Helper()
	db = full{storetest.Open(t), new(atomic.Int32)}
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

func TestWorkThatIsDueIsHandedOnOnceHoweverLongItCannotBeTakenOff(t *testing.T) {
	db, kept, hops, event := workshop(t)
	now, day := event.Posted.ReceivedAt, fanfare.DayOf(event.Posted.ReceivedAt)
	work := fanfare.Due{At: now.Add(-time.Minute).Truncate(time.Second), Channel: 1, Lane: fanfare.Normal,
		Slice: fanfare.RecipientRange{Manifest: fanfare.NewManifestID(event.Posted.Seq, 0), Positions: []uint32{3}, Attempt: 2}}
	if err := kept.Commit(t.Context(), day, &fanfare.Commit{Dues: []fanfare.Due{work}}); err != nil {
		t.Fatal(err)
	}
	db.writes.Store(2)
	if err := newDue(kept, hops, clock.System{}, slog.New(slog.DiscardHandler)).release(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	hasOneBatch(t, hops)
	if left, err := kept.DueBy(t.Context(), day, now, 10); err != nil || len(left) > 0 {
		t.Errorf("%d pieces of work are left (%v)", len(left), err)
	}
}

func nothing(*fanfare.Batch) bool { return false }

func TestWhatWasPausedIsHandedOnOnceHoweverOftenItIsResumed(t *testing.T) {
	db, kept, hops, event := workshop(t)
	day := fanfare.DayOf(event.Posted.ReceivedAt)
	held := fanfare.Batch{Day: day, Channel: 1, Lane: fanfare.Normal, Slices: []fanfare.RecipientRange{{Manifest: fanfare.NewManifestID(event.Posted.Seq, 0), Positions: []uint32{3}, Attempt: 1}}}
	if err := kept.Hold(t.Context(), &held); err != nil {
		t.Fatal(err)
	}
	waiting := newDue(kept, hops, clock.System{}, slog.New(slog.DiscardHandler))
	db.writes.Store(2)
	for range 2 {
		if err := waiting.Resume(t.Context(), nothing); fanfare.CodeOf(err) != fanfare.DiskFull {
			t.Errorf("got %v", err)
		}
	}
	if err := waiting.Resume(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	hasOneBatch(t, hops)
	if left, _, err := kept.Held(t.Context(), day); err != nil || len(left) > 0 {
		t.Errorf("%d batches are left (%v)", len(left), err)
	}
}
