package recovery

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// openDeliveries is a record with one event whose manifest has two channels, of
// five members and of one.
func openDeliveries(t *testing.T) (*deliveries.Store, *fanfare.MatchResult) {
	t.Helper()
	store := deliveries.New(storetest.Open(t))
	received := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	frozen := &fanfare.MatchResult{
		Posted:  &fanfare.AcceptedEvent{Service: "news", Topic: "story", Lane: fanfare.Bulk, ReceivedAt: received, Seq: fanfare.NewEventSeq(7, 0)},
		Matched: 6, Messages: 6,
	}
	m := fanfare.Manifest{ID: fanfare.NewManifestID(frozen.Posted.Seq, 0), Sections: []fanfare.Section{{Channel: 1, Template: 1}, {Channel: 2, Template: 1}}}
	for i := range 5 {
		m.Sections[0].Members.Add(fanfare.NewRowID(0, uint32(i+1)), fanfare.NewRowID(0, uint32(i+1)))
	}
	m.Sections[1].Members = fanfare.MembersOf(m.Sections[0].Members.At(0))
	frozen.Manifests = []fanfare.Manifest{m}
	if _, err := store.Freeze(t.Context(), []*fanfare.MatchResult{frozen}, received); err != nil {
		t.Fatal(err)
	}
	return store, frozen
}

// Deliveries that have a due time or are parked are not held.
func TestOpenDeliveriesAreHeldForTheirNextAttempt(t *testing.T) {
	store, frozen := openDeliveries(t)
	day, manifest := frozen.Posted.Ref().Day, frozen.Manifests[0].ID
	at := frozen.Posted.ReceivedAt
	entry := func(position uint32, state fanfare.State) fanfare.Entry {
		return fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: day, Manifest: manifest, Position: position}, Attempt: 1, State: state, At: at}
	}
	// 0 is over, 1 waits for its time, 2 was due and lay on the bus, 3 is parked,
	// and of 4 and of the other channel nothing was tried. The first attempt on 2 is
	// due besides: it was put off twice, and made when it was due for the first time.
	err := store.Commit(t.Context(), day, &fanfare.Commit{
		Entries: []fanfare.Entry{entry(0, fanfare.Accepted), entry(1, fanfare.Deferred), entry(2, fanfare.Deferred)},
		Dues: []fanfare.Due{
			{At: at.Add(time.Hour), Channel: 1, Lane: fanfare.Bulk, Slice: fanfare.RecipientRange{Manifest: manifest, Positions: []uint32{1}, Attempt: 2}},
			{At: at.Add(time.Hour), Channel: 1, Lane: fanfare.Bulk, Slice: fanfare.RecipientRange{Manifest: manifest, Positions: []uint32{2}, Attempt: 1}, Why: fanfare.WaitDestinationLimit},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	parked, err := json.Marshal(&fanfare.Batch{Day: day, Channel: 1, Lane: fanfare.Bulk, Slices: []fanfare.RecipientRange{{Manifest: manifest, From: 3, To: 4, Attempt: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Park(t.Context(), day, frozen.Posted.Seq, fanfare.Parked{Kind: fanfare.ParkedBatch, At: at}, parked); err != nil {
		t.Fatal(err)
	}

	r := Recovery{Store: store}
	for range 2 { // after a kill it is repeated
		var list []backup.Uncertain
		if err := r.holdDay(t.Context(), day, func(u *backup.Uncertain) error { list = append(list, *u); return nil }); err != nil {
			t.Fatal(err)
		}
		want := backup.Uncertain{Event: frozen.Posted.Ref().String(), Service: "news", Topic: "story", Messages: 6, Unsettled: 5, Deferred: 2}
		if len(list) != 1 || list[0] != want {
			t.Errorf("uncertain are %+v, want %+v", list, want)
		}
		held, _, err := store.Held(t.Context(), day)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, batch := range held {
			for _, s := range batch.Slices {
				got = append(got, fmt.Sprintf("channel %d, lane %s, attempt %d: %v-%v %v", batch.Channel, batch.Lane, s.Attempt, s.From, s.To, s.Positions))
			}
		}
		slices.Sort(got)
		if want := []string{"channel 1, lane bulk, attempt 1: 4-5 []", "channel 1, lane bulk, attempt 2: 2-3 []", "channel 2, lane bulk, attempt 1: 5-6 []"}; !slices.Equal(got, want) {
			t.Errorf("held are %q, want %q", got, want)
		}
	}
}

// The sequence numbers of an existing bus could belong to events that were accepted after the backup.
func TestRestoreRefusesABusWithEvents(t *testing.T) {
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hops.Close(); err != nil {
			t.Error(err)
		}
	})
	note := &backup.Note{State: "new", LastEvent: fanfare.NewEventSeq(9, 3)}
	first := FirstGroup(fanfare.NewEventSeq(5, 0), note)
	if first != 9+skippedGroups {
		t.Errorf("the first group after the restore is %d", first)
	}
	r := Recovery{Dir: t.TempDir(), Note: note, Bus: hops}
	if err := r.Restore(t.Context(), nil, first); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("got %v", err)
	}
	if next := FirstGroup(fanfare.NewEventSeq(5, 0), nil); next != 5+skippedGroups {
		t.Errorf("where the bus was lost the first group is %d", next)
	}
	if next := FirstGroup(0, nil); next != 1 {
		t.Errorf("the first group of all is %d", next)
	}
}
