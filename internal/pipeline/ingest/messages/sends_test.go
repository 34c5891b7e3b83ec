package messages

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A part is found where its event is: in EVENTS before it is matched, and in the store afterwards, days later and without the ids in memory.
func TestAPartIsFoundWhereverItsEventIs(t *testing.T) {
	store := deliveries.New(storetest.Open(t))
	collector := ingest.Start(ingest.Options{Clock: clock.System{}, Floor: func() error { return nil }})
	t.Cleanup(collector.Stop)
	begun := time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC)
	var events []*fanfare.AcceptedEvent
	m := New(Options{Store: store, Collector: collector, Clock: clock.System{}, Replay: func(_ context.Context, since time.Time, visit func(seq uint64, kept time.Time, group []byte) error) error {
		if since.After(begun) {
			t.Errorf("EVENTS is read since %s only", since)
		}
		for _, e := range events {
			group, err := eventgroup.Encode(e)
			if err != nil {
				return err
			}
			if err := visit(e.Seq.Stream(), e.ReceivedAt, group); err != nil {
				return err
			}
		}
		return nil
	}})
	part := func(service, send string, number int) *fanfare.AcceptedEvent {
		e := m.postedPart(service, &wire.MessageRequest{}, send, number)
		e.ReceivedAt = begun.Add(3 * time.Second) // the next day
		e.Direct.Recipients = []fanfare.Recipient{{Subscriber: fanfare.NewRowID(3, 1)}}
		return e
	}
	find := func(when string, e *fanfare.AcceptedEvent, want fanfare.EventRef) {
		t.Helper()
		ref, found, err := m.findPart(t.Context(), e, begun)
		if err != nil || found != (want != fanfare.EventRef{}) || found && ref != want {
			t.Errorf("%s: %v, %v, %v, want %v", when, ref, found, err, want)
		}
	}
	wanted := part("news", "snd-a", 1)
	find("before it is sent", wanted, fanfare.EventRef{})
	queued := part("news", "snd-a", 1)
	queued.Seq = fanfare.NewEventSeq(19, 5)
	others := []*fanfare.AcceptedEvent{part("news", "snd-a", 2), part("news", "snd-b", 1), part("games", "snd-a", 1), part("news", "snd-a", 1)}
	others[3].Event.Source = messageSource // a client chose the id of a part as its Idempotency-Key
	topic := part("news", "snd-a", 1)
	topic.Direct, topic.Topic = nil, "story" // or of an event, with our source
	others = append(others, topic)
	for i, e := range others {
		e.Seq = fanfare.NewEventSeq(uint64(17+i), 0) // some before, some after
	}
	events = others
	find("with other events", wanted, fanfare.EventRef{})
	events = append(events, queued)
	find("before it is matched", wanted, queued.Ref())
	events = nil
	for _, e := range append(others, queued) {
		f := &fanfare.MatchResult{Posted: e, KeptAt: e.ReceivedAt, MatchedAt: e.ReceivedAt}
		if e.Direct != nil {
			f.Messages, f.Manifests = 1, plan.DirectManifests(e.Seq, e.Direct)
		}
		if _, err := store.Freeze(t.Context(), []*fanfare.MatchResult{f}, e.ReceivedAt); err != nil {
			t.Fatal(err)
		}
	}
	find("when it is only in the store", wanted, queued.Ref())
	collector.LoadIDs([]*fanfare.AcceptedEvent{queued})
	m.options.Replay = nil // not needed
	find("when its id is in memory", wanted, queued.Ref())
}

func TestMissingValuesAreNamed(t *testing.T) {
	for message, want := range map[string]string{
		"undefined variable sub.name": "name", "undefined variable sub.home.city": "home", `undefined variable sub["first name"]`: "first name", "undefined variable ((First name))": "First name",
		"undefined variable event.title": "", "undefined variable subscriber.attributes.x": "", "another error": "",
	} {
		if got := missingValue(&fanfare.Error{Message: message}); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	data := withValue(nil, "a")
	data = withValue(data, "b")
	if string(data) != `{"a":"-","b":"-"}` || withValue(data, "a") != nil || withValue(data, "") != nil || withValue(json.RawMessage("[]"), "a") != nil {
		t.Errorf("the data is %s", data)
	}
}
