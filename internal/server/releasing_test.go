package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/mail/address"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// heldCast is a store in which a broadcast waits for approval, with a batch that is
// held for it and another that is held for one that is paused.
func heldCast(t *testing.T) (db full, stops *switches, freeing *releasing, waiting, paused *fanfare.MatchResult) {
	t.Helper()
	db, kept, hops, _ := workshop(t)
	people, err := registry.Open(t.Context(), registry.Options{Store: control.New(db.Database), Conditions: condition.New(), ParseAddress: address.Parse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { people.Close() })
	document, err := registry.ParseDocument([]byte("service: news\nchannels:\n  email: {driver: smtp, relay: '127.0.0.1:1', from: News <news@example.org>}\n"), "")
	if err == nil {
		_, err = people.Apply(t.Context(), document)
	}
	if err != nil {
		t.Fatal(err)
	}
	channel, _ := people.ChannelNamed("news", "email")
	plain, now := deliveries.New(db.Database), time.Now()
	freeze := func(number uint64, hold string) *fanfare.MatchResult {
		f := &fanfare.MatchResult{Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: now, Seq: fanfare.NewEventSeq(number, 0)}, Messages: 2, Hold: hold}
		if _, err := plain.Freeze(t.Context(), []*fanfare.MatchResult{f}, now); err != nil {
			t.Fatal(err)
		}
		batch := fanfare.Batch{Day: fanfare.DayOf(now), Channel: channel.Number, Lane: fanfare.Normal, Slices: []fanfare.RecipientRange{{Manifest: fanfare.NewManifestID(f.Posted.Seq, 0), To: 2, Attempt: 1}}}
		if err := plain.Hold(t.Context(), &batch); err != nil {
			t.Fatal(err)
		}
		return f
	}
	waiting, paused = freeze(8, "it is large"), freeze(9, "")
	quiet := slog.New(slog.DiscardHandler)
	recorder := record.Start(record.Options{Store: plain, Clock: clock.System{}, Logger: quiet})
	t.Cleanup(recorder.Stop)
	freeing = newReleasing(due.New(kept, hops, clock.System{}, quiet), kept, quiet)
	stops = &switches{registry: people, store: plain, recorder: recorder, clock: clock.System{}, paces: &paces{}, ahead: map[fanfare.EventRef]bool{}, resumed: freeing.release, stopped: func() {}, hurry: func() {}}
	freeing.switches = stops
	if err := stops.load(t.Context(), []fanfare.Day{fanfare.DayOf(now)}); err != nil {
		t.Fatal(err)
	}
	if err := stops.Pause(t.Context(), fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: paused.Posted.Ref().String()}, "the test"); err != nil {
		t.Fatal(err)
	}
	return db, stops, freeing, waiting, paused
}

// heldOf lists the events that batches are held for.
func heldOf(t *testing.T, freeing *releasing, day fanfare.Day) (events []fanfare.EventSeq) {
	t.Helper()
	batches, _, err := freeing.store.Held(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		events = append(events, batches[i].Slices[0].Manifest.Event())
	}
	return events
}

// TestAnApprovalIsTrueAlsoWhereItsReleaseFails has the disk full, and the one who
// asked gone, when what was held goes back to work.
func TestAnApprovalIsTrueAlsoWhereItsReleaseFails(t *testing.T) {
	db, stops, freeing, waiting, paused := heldCast(t)
	id, day := waiting.Posted.Ref().String(), fanfare.DayOf(waiting.Posted.ReceivedAt)
	db.writes.Store(2)
	asking, leave := context.WithCancel(t.Context())
	freeing.switches.hurry = leave // between what is kept and what follows from it
	if err := stops.Approve(asking, id, "key-1"); err != nil {
		t.Fatal(err)
	}
	if asking.Err() == nil {
		t.Fatal("who asked is still there")
	}
	if got := heldOf(t, freeing, day); len(got) != 2 {
		t.Fatalf("held are %v: the write was not refused", got)
	}
	if b, err := stops.store.Broadcast(t.Context(), waiting.Posted.Ref()); err != nil || b.State != "running" || b.ApprovedBy != "key-1" {
		t.Errorf("the broadcast is %+v, %v", b, err)
	}
	select {
	case <-freeing.again:
	default:
		t.Fatal("nobody is told that something is left to do")
	}
	tries := 0
	for ; freeing.try(t.Context(), nil) != nil; tries++ {
	}
	if tries != 1 {
		t.Errorf("it was refused %d times more, not once", tries)
	}
	if got := heldOf(t, freeing, day); len(got) != 1 || got[0] != paused.Posted.Seq {
		t.Errorf("held are %v, not what is paused alone", got)
	}
	hasOneBatch(t, db.bus)
	if err := stops.Approve(t.Context(), id, "key-2"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("approved again: %v", err)
	}
}

// TestAStartReleasesWhatTheRunBeforeDidNot is that of a process which died when the
// approval was kept, and before anything followed.
func TestAStartReleasesWhatTheRunBeforeDidNot(t *testing.T) {
	db, stops, freeing, waiting, paused := heldCast(t)
	day := fanfare.DayOf(waiting.Posted.ReceivedAt)
	stops.resumed = func(context.Context, ...fanfare.EventRef) {} // it dies
	if err := stops.Approve(t.Context(), waiting.Posted.Ref().String(), "key-1"); err != nil {
		t.Fatal(err)
	}
	if err := stops.load(t.Context(), []fanfare.Day{day}); err != nil { // as a start does
		t.Fatal(err)
	}
	if err := freeing.try(t.Context(), stops.cancelledAndOpen()); err != nil {
		t.Fatal(err)
	}
	if got := heldOf(t, freeing, day); len(got) != 1 || got[0] != paused.Posted.Seq {
		t.Errorf("held are %v, not what is paused alone", got)
	}
	hasOneBatch(t, db.bus)
}

// TestWhatWaitsOfACancelledBroadcastIsDueHoweverOftenThatFails cancels on a full
// disk, and again as a start does that finds it cancelled.
func TestWhatWaitsOfACancelledBroadcastIsDueHoweverOftenThatFails(t *testing.T) {
	db, stops, freeing, waiting, _ := heldCast(t)
	ref := waiting.Posted.Ref()
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	due := fanfare.Due{At: later, Channel: 1, Slice: fanfare.RecipientRange{Manifest: fanfare.NewManifestID(ref.Seq, 0), Positions: []uint32{1}, Attempt: 2}}
	if err := stops.store.Commit(t.Context(), ref.Day, &fanfare.Commit{Dues: []fanfare.Due{due}}); err != nil {
		t.Fatal(err)
	}
	stops.recorder.Begin(ref, 2, fanfare.Progress{})
	db.writes.Store(1)
	if err := stops.Cancel(t.Context(), fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: ref.String()}, "no"); err != nil {
		t.Fatal(err)
	}
	isDue := func() bool {
		work, err := stops.store.DueBy(t.Context(), ref.Day, time.Now(), 10)
		if err != nil {
			t.Fatal(errors.Unwrap(err), err)
		}
		return len(work) == 1
	}
	if isDue() {
		t.Fatal("the write was not refused")
	}
	if again := stops.cancelledAndOpen(); len(again) != 1 || again[0] != ref {
		t.Errorf("a start would look at %v", again)
	}
	if err := freeing.try(t.Context(), nil); err != nil || !isDue() {
		t.Errorf("it is not due: %v", err)
	}
}

// TestAnApprovalCountsFromWhenTheBroadcastIsShownAsHeld has it come between the moment
// at which the store has a broadcast that waits for it and the one at which the
// switches know.
func TestAnApprovalCountsFromWhenTheBroadcastIsShownAsHeld(t *testing.T) {
	_, stops, _, waiting, paused := heldCast(t)
	ref := waiting.Posted.Ref()
	early := stops.now.Load().copy()
	delete(early.held, ref)
	stops.publish(early)
	if err := stops.Approve(t.Context(), ref.String(), "key-1"); err != nil {
		t.Fatal(err)
	}
	stops.Held([]*fanfare.MatchResult{waiting})
	if why, holds := stops.now.Load().held[ref]; holds {
		t.Errorf("approved, it waits: %v", why)
	}
	if err := stops.Approve(t.Context(), ref.String(), "key-2"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("approved again: %v", err)
	}
	if err := stops.Approve(t.Context(), paused.Posted.Ref().String(), "key-1"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("what waits for nobody is approved: %v", err)
	}
	if len(stops.ahead) != 0 {
		t.Errorf("still ahead are %v", stops.ahead)
	}
}
