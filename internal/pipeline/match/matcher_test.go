package match

import (
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A parked event must not become the state of its key after later events.
func TestParkedGroupKeepsItsSequences(t *testing.T) {
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
	group, err := eventgroup.Encode(events...) // no sequence yet
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
		events, err := eventgroup.Decode(lease.Data, lease.Seq)
		if err != nil {
			t.Fatal(err)
		}
		return lease, events
	}
	lease, first := take()
	lease.Deliveries = fanfare.MaxFailures
	(&Matcher{Options: Options{Store: store, Clock: clock.System{}, Logger: logger}}).fail(t.Context(), lease, &fanfare.Error{Message: "a failure"})
	parked, payloads, err := store.Parked(t.Context(), fanfare.DayOf(lease.Kept))
	if err != nil || len(parked) != 1 {
		t.Fatalf("%d parked, %v", len(parked), err)
	}
	if _, err := hops.AppendEvents(t.Context(), fanfare.Normal, payloads[0]); err != nil { // as a retry does
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
