package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestStatesOutliveTheirDaysAndNoCopyMissesThem(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db, current := storetest.Open(t), map[uint32]uint32{1: 1}
	c := &carrying{states: topicstate.New(), days: deliveries.New(db), control: control.New(db), series: func() map[uint32]uint32 { return current }, copying: ctxlock.New(), logger: slog.New(slog.DiscardHandler)}
	recorder := record.Start(record.Options{Store: c.days, Clock: clock.System{}, Logger: c.logger})
	defer recorder.Stop()
	freeze := func(daysAgo, n int, keys ...string) {
		t.Helper()
		var events []*fanfare.Frozen
		for i, key := range keys {
			events = append(events, &fanfare.Frozen{KeptAt: now, MatchedAt: now, Key: &fanfare.KeyRef{Topic: 1, Series: 1, Key: key},
				Posted: &fanfare.Posted{Service: "news", Topic: "quote", ReceivedAt: now.AddDate(0, 0, -daysAgo), Seq: fanfare.NewEventSeq(uint64(n), i),
					Event: fanfare.Event{Data: json.RawMessage(fmt.Sprint(n))}}})
		}
		if _, err := c.days.Freeze(t.Context(), events, now); err != nil {
			t.Fatal(err)
		}
	}
	var many []string
	for i := range carryAtOnce + 10 {
		many = append(many, fmt.Sprint("key ", i))
	}
	freeze(40, 1, many...)
	freeze(39, 2, "key 1", "other")
	freeze(1, 3, "key 2")
	freeze(0, 4, "key 3")

	x := &indexing{store: c.days, recorder: recorder, carry: c.day, clock: &setClock{now}, logger: c.logger, retention: 30 * 24 * time.Hour}
	if err := c.copying.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.expire(t.Context()); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Fatalf("while a copy is made: %v", err)
	}
	if days, err := c.days.Days(t.Context()); err != nil || len(days) != 4 {
		t.Fatalf("while a copy is made: %v, %v", days, err)
	}
	c.copying.Unlock()
	x.clock = &setClock{now.Add(removeAgain)}
	if err := x.expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	days, err := c.days.Days(t.Context())
	if err != nil || len(days) != 2 {
		t.Fatalf("%v, %v", days, err)
	}

	// A start knows them all again.
	if err := c.loadFor(t.Context(), days, current); err != nil {
		t.Fatal(err)
	}
	if got := c.states.Size(1, 1).Keys; got != len(many)+1 {
		t.Errorf("%d keys, want %d", got, len(many)+1)
	}
	for key, want := range map[string]string{"key 0": "1", "key 1": "2", "other": "2", "key 2": "3", "key 3": "4"} {
		if l, _ := c.states.Get(fanfare.KeyRef{Topic: 1, Series: 1, Key: key}); string(l.Data) != want {
			t.Errorf("%s is %s, want that of event %s", key, l.Data, want)
		}
	}

	// Where the topic has another key since, they are forgotten for good, by a server
	// that goes on as by one that starts.
	current = map[uint32]uint32{1: 2}
	freeze(3, 1, "late") // was matched before
	freeze(4, 2, "late")
	if err := c.carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.states.Size(1, 1).Keys; got != 0 {
		t.Errorf("%d keys are in memory", got)
	}
	err = c.control.States(t.Context(), func(l *fanfare.Last) error {
		t.Errorf("%+v is in the control tables", l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.states = topicstate.New()
		if err := c.loadFor(t.Context(), nil, map[uint32]uint32{1: 2}); err != nil {
			t.Fatal(err)
		}
		if got := c.states.Size(1, 2).Keys + c.states.Size(1, 1).Keys; got != 0 {
			t.Errorf("%d keys of another series", got)
		}
	}
	if err := c.loadFor(t.Context(), nil, map[uint32]uint32{1: 1}); err != nil || c.states.Size(1, 1).Keys != 0 {
		t.Errorf("the old series is kept: %d keys, %v", c.states.Size(1, 1).Keys, err)
	}
}

func TestWhatATopicHadNoRoomForEndsWithItsDay(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db := storetest.Open(t)
	c := &carrying{states: topicstate.New(), days: deliveries.New(db), control: control.New(db), copying: ctxlock.New(),
		series: func() map[uint32]uint32 { return map[uint32]uint32{1: 1} }, logger: slog.New(slog.DiscardHandler)}
	for i, key := range []string{"large", "further"} {
		f := &fanfare.Frozen{KeptAt: now, MatchedAt: now, Key: &fanfare.KeyRef{Topic: 1, Series: 1, Key: key},
			Posted: &fanfare.Posted{Service: "news", Topic: "quote", ReceivedAt: now, Seq: fanfare.NewEventSeq(uint64(i+1), 0), Event: fanfare.Event{Data: json.RawMessage("1")}}}
		if _, err := c.days.Freeze(t.Context(), []*fanfare.Frozen{f}, now); err != nil {
			t.Fatal(err)
		}
		known := last(f)
		if key == "large" {
			known.Data = make(json.RawMessage, topicstate.MaxBytes-len(key))
		}
		c.states.Put(known)
	}
	if err := c.day(t.Context(), fanfare.DayOf(now)); err != nil {
		t.Fatal(err)
	}
	var carried []string
	if err := c.control.States(t.Context(), func(l *fanfare.Last) error { carried = append(carried, l.Of.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(carried) != 1 || carried[0] != "large" {
		t.Errorf("carried are %v", carried)
	}
	if err := c.days.States(t.Context(), fanfare.DayOf(now), func(l *fanfare.Last) error { return fmt.Errorf("%s is left", l.Of.Key) }); err != nil {
		t.Error(err)
	}
}
