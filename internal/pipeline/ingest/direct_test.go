package ingest

import (
	"encoding/json"
	"reflect"
	"testing"

	"fanfare.dev/fanfare"
)

// direct is a message with an id, to one person.
func direct(id string) fanfare.AcceptedEvent {
	return fanfare.AcceptedEvent{Service: "news", Lane: fanfare.Urgent, Event: fanfare.Event{ID: id, Source: "/test", Data: json.RawMessage(`{"a":1}`)},
		Direct: &fanfare.Direct{Channel: 3, Template: 9, Recipients: []fanfare.Recipient{{Subscriber: 7, Data: json.RawMessage(`{"b":2}`)}}}}
}

func TestADirectSendNeedsNoTopicAndKeepsItsAudience(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *testClock) {
		if r := post(t, c, direct("1"))[0]; r.Err != nil || r.Duplicate {
			t.Fatalf("got %+v", r)
		}
		kept := log.kept()[0].events[0]
		if want := direct("1"); !reflect.DeepEqual(kept.Direct, want.Direct) || kept.Lane != fanfare.Urgent {
			t.Errorf("kept %+v in lane %s", kept.Direct, kept.Lane)
		}
	})
}

func TestTheIDOfADirectSendIsApartFromThoseOfEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *testClock) {
		message := direct("1")
		if _, known := c.Known(&message); known {
			t.Error("known before it was sent")
		}
		first := post(t, c, event("1"), direct("1"), direct("1"))
		if first[0].Duplicate || first[1].Duplicate || !first[2].Duplicate || first[2].Ref != first[1].Ref || first[0].Ref == first[1].Ref {
			t.Fatalf("got %+v", first)
		}
		if ref, known := c.Known(&message); !known || ref != first[1].Ref {
			t.Errorf("known as %v, %v", ref, known)
		}
		again := newMemory()
		for _, g := range log.kept() { // as a restart learns it
			for _, p := range g.events {
				again.learn(identify(p), p.Ref(), p.ReceivedAt)
			}
		}
		if ref, known := again.find(identify(&message)); !known || ref != first[1].Ref {
			t.Errorf("after a restart known as %v, %v", ref, known)
		}
	})
}
