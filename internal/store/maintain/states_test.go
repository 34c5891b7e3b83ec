package maintain

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestStateArchiveKeepsStatesOfRemovedDays(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db, current := storetest.Open(t), map[uint32]uint32{1: 1}
	copying := ctxlock.New()
	a := NewStateArchive(topicstate.New(), deliveries.New(db), control.New(db), func() map[uint32]uint32 { return current }, copying, slog.New(slog.DiscardHandler))
	freeze := func(daysAgo, n int, keys ...string) {
		t.Helper()
		var events []*fanfare.MatchResult
		for i, key := range keys {
			events = append(events, &fanfare.MatchResult{KeptAt: now, MatchedAt: now, Key: &fanfare.KeyRef{Topic: 1, Series: 1, Key: key},
				Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "quote", ReceivedAt: now.AddDate(0, 0, -daysAgo), Seq: fanfare.NewEventSeq(uint64(n), i),
					Event: fanfare.Event{Data: json.RawMessage(fmt.Sprint(n))}}})
		}
		if _, err := a.days.Freeze(t.Context(), events, now); err != nil {
			t.Fatal(err)
		}
	}
	var many []string
	for i := range archiveStates + 10 {
		many = append(many, fmt.Sprint("key ", i))
	}
	freeze(40, 1, many...)
	freeze(39, 2, "key 1", "other")
	freeze(1, 3, "key 2")
	freeze(0, 4, "key 3")

	clock := &fixedClock{now}
	r := newRetention(a.days, nil, a.Archive, clock)
	if err := copying.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.removeOld(t.Context()); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Fatalf("while a copy is made: %v", err)
	}
	if days, err := a.days.Days(t.Context()); err != nil || len(days) != 4 {
		t.Fatalf("while a copy is made: %v, %v", days, err)
	}
	copying.Unlock()
	clock.now = now.Add(removePause)
	if err := r.removeOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	days, err := a.days.Days(t.Context())
	if err != nil || len(days) != 2 {
		t.Fatalf("%v, %v", days, err)
	}

	// A start knows them all again.
	if err := a.Load(t.Context(), days, nil); err != nil {
		t.Fatal(err)
	}
	if got := a.states.Size(1, 1).Keys; got != len(many)+1 {
		t.Errorf("%d keys, want %d", got, len(many)+1)
	}
	for key, want := range map[string]string{"key 0": "1", "key 1": "2", "other": "2", "key 2": "3", "key 3": "4"} {
		if l, _ := a.states.Get(fanfare.KeyRef{Topic: 1, Series: 1, Key: key}); string(l.Data) != want {
			t.Errorf("%s is %s, want that of event %s", key, l.Data, want)
		}
	}

	// Where the topic has another key since, they are forgotten for good, by a server
	// that goes on as by one that starts.
	current = map[uint32]uint32{1: 2}
	freeze(3, 1, "late") // was matched before
	freeze(4, 2, "late")
	if err := a.archiveOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := a.states.Size(1, 1).Keys; got != 0 {
		t.Errorf("%d keys are in memory", got)
	}
	err = a.control.States(t.Context(), func(l *fanfare.Last) error {
		t.Errorf("%+v is in the control tables", l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a.states = topicstate.New()
		current = map[uint32]uint32{1: 2}
		if err := a.Load(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if got := a.states.Size(1, 2).Keys + a.states.Size(1, 1).Keys; got != 0 {
			t.Errorf("%d keys of another series", got)
		}
	}
	current = map[uint32]uint32{1: 1}
	if err := a.Load(t.Context(), nil, nil); err != nil || a.states.Size(1, 1).Keys != 0 {
		t.Errorf("the old series is kept: %d keys, %v", a.states.Size(1, 1).Keys, err)
	}
}

func TestStateArchiveDropsStatesOfAFullTopic(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db := storetest.Open(t)
	a := NewStateArchive(topicstate.New(), deliveries.New(db), control.New(db), func() map[uint32]uint32 { return map[uint32]uint32{1: 1} }, ctxlock.New(), slog.New(slog.DiscardHandler))
	for i, key := range []string{"large", "further"} {
		f := &fanfare.MatchResult{KeptAt: now, MatchedAt: now, Key: &fanfare.KeyRef{Topic: 1, Series: 1, Key: key},
			Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "quote", ReceivedAt: now, Seq: fanfare.NewEventSeq(uint64(i+1), 0), Event: fanfare.Event{Data: json.RawMessage("1")}}}
		if _, err := a.days.Freeze(t.Context(), []*fanfare.MatchResult{f}, now); err != nil {
			t.Fatal(err)
		}
		known := &fanfare.Last{Of: *f.Key, Event: f.Posted.Ref(), At: f.Posted.ReceivedAt, Data: f.Posted.Event.Data}
		if key == "large" {
			known.Data = make(json.RawMessage, topicstate.MaxBytes-len(key))
		}
		a.states.Put(known)
	}
	if err := a.Archive(t.Context(), fanfare.DayOf(now)); err != nil {
		t.Fatal(err)
	}
	var carried []string
	if err := a.control.States(t.Context(), func(l *fanfare.Last) error { carried = append(carried, l.Of.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(carried) != 1 || carried[0] != "large" {
		t.Errorf("carried are %v", carried)
	}
	if err := a.days.States(t.Context(), fanfare.DayOf(now), func(l *fanfare.Last) error { return fmt.Errorf("%s is left", l.Of.Key) }); err != nil {
		t.Error(err)
	}
}
