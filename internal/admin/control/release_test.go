package control

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// heldBroadcasts returns the switches of a store with a broadcast that waits for approval and a paused broadcast, each
// with a held batch.
func heldBroadcasts(t *testing.T) (db fullDatabase, s *Switches, waiting, paused *fanfare.MatchResult) {
	t.Helper()
	db, kept, hops := openStore(t)
	people, err := registry.Open(t.Context(), registry.Options{Store: control.New(db.Database), Conditions: condition.New(), ParseAddress: address.Parse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { people.Close() })
	document, err := document.ParseDocument([]byte("service: news\nchannels:\n  email: {driver: smtp, relay: '127.0.0.1:1', from: News <news@example.org>}\n"), "")
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
	s = New(Options{Registry: people, Store: plain, Recorder: recorder, Due: due.New(kept, hops, clock.System{}, quiet), Clock: clock.System{}, Logger: quiet, DropStopped: func() {}, RatesChanged: func() {}})
	s.releaser.store = kept
	if err := s.Load(t.Context(), []fanfare.Day{fanfare.DayOf(now)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context(), fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: paused.Posted.Ref().String()}, "the test"); err != nil {
		t.Fatal(err)
	}
	return db, s, waiting, paused
}

// heldOf lists the events of held batches.
func heldOf(t *testing.T, s *Switches, day fanfare.Day) (events []fanfare.EventSeq) {
	t.Helper()
	batches, _, err := s.options.Store.Held(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		events = append(events, batches[i].Slices[0].Manifest.Event())
	}
	return events
}

// The disk is full, and the client gone, when the held batch is released.
func TestApprovalCountsEvenIfItsReleaseFails(t *testing.T) {
	db, s, waiting, paused := heldBroadcasts(t)
	id, day := waiting.Posted.Ref().String(), fanfare.DayOf(waiting.Posted.ReceivedAt)
	db.writes.Store(2)
	asking, leave := context.WithCancel(t.Context())
	s.options.RatesChanged = leave // between the durable change and the release
	if err := s.Approve(asking, id, "key-1"); err != nil {
		t.Fatal(err)
	}
	if asking.Err() == nil {
		t.Fatal("the client is still there")
	}
	if got := heldOf(t, s, day); len(got) != 2 {
		t.Fatalf("held are %v: the write was not refused", got)
	}
	if b, err := s.options.Store.Broadcast(t.Context(), waiting.Posted.Ref()); err != nil || b.State != "running" || b.ApprovedBy != "key-1" {
		t.Errorf("the broadcast is %+v, %v", b, err)
	}
	select {
	case <-s.releaser.again:
	default:
		t.Fatal("nobody is told that something is left to do")
	}
	tries := 0
	for ; s.releaser.try(t.Context(), nil) != nil; tries++ {
	}
	if tries != 1 {
		t.Errorf("it was refused %d times more, not once", tries)
	}
	if got := heldOf(t, s, day); len(got) != 1 || got[0] != paused.Posted.Seq {
		t.Errorf("held are %v, not what is paused alone", got)
	}
	hasOneBatch(t, db.bus)
	if err := s.Approve(t.Context(), id, "key-2"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("approved again: %v", err)
	}
}

// The process ends after the approval is stored and before the release.
func TestStartReleasesApprovalsOfThePreviousRun(t *testing.T) {
	db, s, waiting, paused := heldBroadcasts(t)
	day := fanfare.DayOf(waiting.Posted.ReceivedAt)
	release := s.releaser.due
	s.releaser.due = deadDue{} // the process ends before the release
	if err := s.Approve(t.Context(), waiting.Posted.Ref().String(), "key-1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), []fanfare.Day{day}); err != nil { // as a start does
		t.Fatal(err)
	}
	s.releaser.due = release
	if err := s.releaser.try(t.Context(), s.openCancelled()); err != nil {
		t.Fatal(err)
	}
	if got := heldOf(t, s, day); len(got) != 1 || got[0] != paused.Posted.Seq {
		t.Errorf("held are %v, not what is paused alone", got)
	}
	hasOneBatch(t, db.bus)
}

// The broadcast is cancelled while the disk is full, and again as by a start that finds it cancelled.
func TestCancelMakesWaitingDeliveriesDueAfterAFailure(t *testing.T) {
	db, s, waiting, _ := heldBroadcasts(t)
	ref := waiting.Posted.Ref()
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	due := fanfare.Due{At: later, Channel: 1, Slice: fanfare.RecipientRange{Manifest: fanfare.NewManifestID(ref.Seq, 0), Positions: []uint32{1}, Attempt: 2}}
	if err := s.options.Store.Commit(t.Context(), ref.Day, &fanfare.Commit{Dues: []fanfare.Due{due}}); err != nil {
		t.Fatal(err)
	}
	s.options.Recorder.(*record.Recorder).Begin(ref, 2, fanfare.Progress{})
	db.writes.Store(1)
	if err := s.Cancel(t.Context(), fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: ref.String()}, "no"); err != nil {
		t.Fatal(err)
	}
	isDue := func() bool {
		work, err := s.options.Store.DueBy(t.Context(), ref.Day, time.Now(), 10)
		if err != nil {
			t.Fatal(errors.Unwrap(err), err)
		}
		return len(work) == 1
	}
	if isDue() {
		t.Fatal("the write was not refused")
	}
	if again := s.openCancelled(); len(again) != 1 || again[0] != ref {
		t.Errorf("a start would look at %v", again)
	}
	if err := s.releaser.try(t.Context(), nil); err != nil || !isDue() {
		t.Errorf("it is not due: %v", err)
	}
}

// The approval comes after the store has the hold and before the switches know it.
func TestApprovalCountsBeforeTheSwitchesKnowTheHold(t *testing.T) {
	_, s, waiting, paused := heldBroadcasts(t)
	ref := waiting.Posted.Ref()
	early := s.current.Load().copy()
	delete(early.held, ref)
	s.publish(early)
	if err := s.Approve(t.Context(), ref.String(), "key-1"); err != nil {
		t.Fatal(err)
	}
	s.Held([]*fanfare.MatchResult{waiting})
	if why, holds := s.current.Load().held[ref]; holds {
		t.Errorf("approved, it waits: %v", why)
	}
	if err := s.Approve(t.Context(), ref.String(), "key-2"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("approved again: %v", err)
	}
	if err := s.Approve(t.Context(), paused.Posted.Ref().String(), "key-1"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("what waits for nobody is approved: %v", err)
	}
	if len(s.approvedEarly) != 0 {
		t.Errorf("still approved early: %v", s.approvedEarly)
	}
}

// deadDue is the due work of a process that has ended.
type deadDue struct{}

func (deadDue) Load(context.Context, fanfare.Day) error                      { return nil }
func (deadDue) ReleaseHeld(context.Context, func(*fanfare.Batch) bool) error { return nil }

// fullDatabase is a database whose disk is full for some writes.
type fullDatabase struct {
	store.Database
	writes *atomic.Int32 // that are refused
	bus    *bus.Bus
}

func (f fullDatabase) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
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

// openStore returns a store whose writes may be refused, with an event of today, and a bus.
func openStore(t *testing.T) (db fullDatabase, kept *deliveries.Store, hops *bus.Bus) {
	t.Helper()
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	db = fullDatabase{storetest.Open(t), new(atomic.Int32), hops}
	kept = deliveries.New(db)
	t.Cleanup(func() {
		if err := hops.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	event := &fanfare.MatchResult{Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: now, Seq: fanfare.NewEventSeq(7, 0)}}
	if _, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{event}, now); err != nil {
		t.Fatal(err)
	}
	return db, kept, hops
}

func hasOneBatch(t *testing.T, hops *bus.Bus) {
	t.Helper()
	if backlog, err := hops.Backlog(t.Context()); err != nil || backlog.Batches != 1 {
		t.Errorf("%+v on the bus (%v), want one batch", backlog, err)
	}
}
