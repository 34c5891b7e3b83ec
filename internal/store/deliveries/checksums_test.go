package deliveries

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// sample returns an event with a kilobyte of data, and a manifest of 1,000 recipients.
func sample() (*fanfare.AcceptedEvent, *fanfare.Manifest) {
	received := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	event := &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: received, Seq: 4096,
		Event: fanfare.Event{ID: "story-1", Source: "/test", Type: "story", Time: received, Data: json.RawMessage(`{"text":"` + strings.Repeat("x", 1000) + `"}`)}}
	m := &fanfare.Manifest{ID: fanfare.NewManifestID(event.Seq, 0), Sections: []fanfare.Section{{Channel: 1, Template: 1}}}
	for i := range 1000 {
		place := fanfare.NewRowID(0, uint32(3*i))
		m.Sections[0].Members.Add(place, place)
	}
	return event, m
}

// BenchmarkChecksums compares the stored forms with and without checksums.
func BenchmarkChecksums(b *testing.B) {
	event, manifest := sample()
	text, err := encodePosted(event)
	if err != nil {
		b.Fatal(err)
	}
	bare, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	blob, err := encodeManifest(manifest)
	if err != nil {
		b.Fatal(err)
	}
	plain, err := manifest.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	day := fanfare.DayOf(event.ReceivedAt)
	for _, of := range []struct {
		name string
		run  func() error
	}{
		{"encode-event/without", func() error { _, err := json.Marshal(event); return err }},
		{"encode-event/with", func() error { _, err := encodePosted(event); return err }},
		{"decode-event/without", func() error { return json.Unmarshal(bare, &fanfare.AcceptedEvent{}) }},
		{"decode-event/with", func() error { return decodePosted(event.Ref(), text, &fanfare.AcceptedEvent{}) }},
		{"encode-manifest/without", func() error { _, err := manifest.AppendBinary(nil); return err }},
		{"encode-manifest/with", func() error { _, err := encodeManifest(manifest); return err }},
		{"decode-manifest/without", func() error { var m fanfare.Manifest; return m.UnmarshalBinary(plain) }},
		{"decode-manifest/with", func() error { _, err := decodeManifest(day, manifest.ID, blob); return err }},
	} {
		b.Run(of.name, func(b *testing.B) {
			for b.Loop() {
				if err := of.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAnOlderValueIsReadWithoutAChecksum(t *testing.T) {
	event, manifest := sample()
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	var got fanfare.AcceptedEvent
	if err := decodePosted(event.Ref(), text, &got); err != nil || got.Event.ID != event.Event.ID {
		t.Errorf("the event is %+v, %v", got, err)
	}
	blob, err := manifest.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeManifest(0, manifest.ID, blob); err != nil || m.Members() != 1000 || m.ID != manifest.ID {
		t.Errorf("the manifest has %d members, %v", m.Members(), err)
	}
	if _, err := decodeManifest(0, manifest.ID, blob[1:]); err == nil {
		t.Error("a manifest without its first byte is read")
	}
}
