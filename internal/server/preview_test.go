package server

import (
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// Whoever publishes an event and looks at a message about it must not wait for others
// that are matched before it.
func TestAPreviewFindsAnEventThatIsNotMatchedYet(t *testing.T) {
	_, kept, hops, _ := workshop(t)
	posted := &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: time.Now().AddDate(0, 0, 1), // a day that has no part yet
		Event: fanfare.Event{ID: "flood", Source: "/news", Type: "story", Data: []byte(`{"title":"Flood"}`)}}
	group, err := eventgroup.Encode(posted)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := hops.AppendEvents(t.Context(), fanfare.Normal, group)
	if err != nil {
		t.Fatal(err)
	}
	posted.Seq = fanfare.NewEventSeq(seq, 0)
	digest, err := render.Compile(render.Source{Name: "several", Subject: "{{ count }}", Text: "{% for item in items %}{{ item.event.title }}{% endfor %}"})
	if err != nil {
		t.Fatal(err)
	}
	m := &previewed{
		previews: previews{store: kept, traces: &report.Traces{Store: kept, Queue: queue{hops}}},
		service:  "news", topic: &registry.Topic{}, ref: posted.Ref(),
		in: wire.PreviewRequest{Events: []string{posted.Ref().String()}},
	}
	if err := m.findEvents(t.Context(), digest); err != nil || len(m.items) != 1 || m.items[0].Event.ID != "flood" {
		t.Errorf("found %v: %v", m.items, err)
	}
	if err := m.asMatched(t.Context(), 7); err != nil {
		t.Errorf("as a person who may get it: %v", err)
	}
}
