package preview

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestPreviewFindsAnEventThatIsNotMatchedYet(t *testing.T) {
	store := deliveries.New(storetest.Open(t))
	events, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := events.Close(); err != nil {
			t.Error(err)
		}
	})
	posted := &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: time.Now().AddDate(0, 0, 1), // a day that has no part yet
		Event: fanfare.Event{ID: "flood", Source: "/news", Type: "story", Data: []byte(`{"title":"Flood"}`)}}
	group, err := eventgroup.Encode(posted)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := events.AppendEvents(t.Context(), fanfare.Normal, group)
	if err != nil {
		t.Fatal(err)
	}
	posted.Seq = fanfare.NewEventSeq(seq, 0)
	digest, err := render.Compile(render.Source{Name: "several", Subject: "{{ count }}", Text: "{% for item in items %}{{ item.event.title }}{% endfor %}"})
	if err != nil {
		t.Fatal(err)
	}
	m := &request{
		Previewer: Previewer{Store: store, Traces: &report.Traces{Store: store, Queue: ingest.Queue{Log: events}}},
		service:   "news", topic: &catalog.Topic{}, ref: posted.Ref(),
		in: wire.PreviewRequest{Events: []string{posted.Ref().String()}},
	}
	if err := m.findEvents(t.Context(), digest); err != nil || len(m.items) != 1 || m.items[0].Event.ID != "flood" {
		t.Errorf("found %v: %v", m.items, err)
	}
	if err := m.asMatched(t.Context(), 7); err != nil {
		t.Errorf("for a subscriber: %v", err)
	}
}

func TestDraftOfAnUnknownTypeIsRefused(t *testing.T) {
	for kind, ok := range map[string]bool{"": true, "email": true, "sms": true, "SMS": false, "letter": false} {
		_, err := partsOf(&wire.TemplateDraft{TemplateParts: wire.TemplateParts{Type: kind}})
		wrong, _ := errors.AsType[*fanfare.Error](err)
		if (err == nil) != ok || !ok && (wrong == nil || wrong.Code != fanfare.Invalid || wrong.Pointer != "/template/type") {
			t.Errorf("%q: %v", kind, err)
		}
	}
}
