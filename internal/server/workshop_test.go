package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// full is a database whose disk is full for some writes.
type full struct {
	store.Database
	writes *atomic.Int32 // that are refused
	bus    *bus.Bus
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
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	db = full{storetest.Open(t), new(atomic.Int32), hops}
	kept = deliveries.New(db)
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
