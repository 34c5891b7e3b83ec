package eventgroup

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestDecodeReturnsEncodedEvents(t *testing.T) {
	var group []byte
	var want []*fanfare.AcceptedEvent
	for i, id := range []string{"a", "<b>&", "ü\u2028"} {
		p := event(id)
		p.Lane, p.ChangeSeq, p.ReceivedAt = fanfare.Bulk, 5, time.Date(2026, 11, 20, 1, 2, 3, 456, time.UTC)
		encoded, err := Encode(&p)
		if err != nil {
			t.Fatal(err)
		}
		group = append(group, encoded...)
		p.Seq = fanfare.NewEventSeq(42, i)
		want = append(want, &p)
	}
	got, err := Decode(group, 42)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v (%v), want %+v", got, err, want)
	}
	for cut := 1; cut < len(group); cut++ {
		if events, err := Decode(group[:cut], 42); err == nil && len(events) == len(want) {
			t.Fatalf("the first %d of %d bytes passed as the whole group", cut, len(group))
		}
	}
}

func FuzzDecode(f *testing.F) {
	p := event("a")
	good, err := Encode(&p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := Decode(b, 1)
		if err != nil {
			return
		}
		var again []byte
		for _, p := range events {
			encoded, err := Encode(p)
			if err != nil {
				t.Fatalf("an event that was read cannot be written: %v", err)
			}
			again = append(again, encoded...)
		}
		second, err := Decode(again, 1)
		if err != nil || len(second) != len(events) {
			t.Fatalf("%d events came back as %d: %v", len(events), len(second), err)
		}
		if len(events) == 0 && !bytes.Equal(again, b) {
			t.Fatal("bytes without an event were read")
		}
	})
}

func TestEncodedEventKeepsItsSequence(t *testing.T) {
	p := &fanfare.AcceptedEvent{Service: "news", Topic: "story", Seq: fanfare.NewEventSeq(77, 3), Event: fanfare.Event{ID: "a", Data: []byte(`{}`)}}
	group, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	events, err := Decode(group, 99)
	if err != nil || len(events) != 1 || events[0].Seq != p.Seq {
		t.Fatalf("got %v (%v), want one event with sequence %x", events, err, uint64(p.Seq))
	}
}

func event(id string) fanfare.AcceptedEvent {
	return fanfare.AcceptedEvent{Service: "news", Topic: "story", Lane: fanfare.TopicLane, Event: fanfare.Event{ID: id, Source: "/test", Data: []byte(`{"a":1}`)}}
}
