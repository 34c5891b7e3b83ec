package server

import (
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// An event that is tried again after others came is not the last of its key.
func TestAGroupThatFailedTooOftenComesAgainWithTheSequencesThatItHad(t *testing.T) {
	logger, store := slog.New(slog.DiscardHandler), deliveries.New(storetest.Open(t))
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hops.Close(); err != nil {
			t.Error(err)
		}
	}()
	events := []*fanfare.AcceptedEvent{{Service: "news", Topic: "quote", Lane: fanfare.Normal, ReceivedAt: time.Now()}, {Service: "news", Topic: "quote", Lane: fanfare.Normal, ReceivedAt: time.Now()}}
	group, err := ingest.Encode(events...) // no sequence yet
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hops.AppendEvents(t.Context(), fanfare.Normal, group); err != nil {
		t.Fatal(err)
	}
	queue, err := hops.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	take := func() (*bus.Lease, []*fanfare.AcceptedEvent) {
		t.Helper()
		lease, err := queue.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		events, err := ingest.Decode(lease.Data, lease.Seq)
		if err != nil {
			t.Fatal(err)
		}
		return lease, events
	}
	lease, first := take()
	lease.Deliveries = fanfare.MaxFailures
	(&matching{store: store, clock: clock.System{}, logger: logger}).fail(t.Context(), lease, &fanfare.Error{Message: "a failure"})
	tries := control.NewParking(control.ParkingOptions{Store: store, Bus: hops, Retrying: ctxlock.New()})
	parked, err := tries.Parked(t.Context())
	if err != nil || len(parked) != 1 {
		t.Fatalf("%d parked, %v", len(parked), err)
	}
	if err := tries.RetryParked(t.Context(), parked[0].ID); err != nil {
		t.Fatal(err)
	}
	lease, again := take()
	if err := lease.Done(); err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if len(again) != len(first) || again[i].Seq != first[i].Seq {
			t.Errorf("events %+v come again as %+v", first, again)
		}
	}
}
