package messages

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// changingStore is a store that changes when manifests are read for the first time.
type changingStore struct {
	report.Store
	happens func()
}

func (g *changingStore) Manifests(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Manifest, error) {
	if happens := g.happens; happens != nil {
		g.happens = nil
		happens()
	}
	return g.Store.Manifests(ctx, ref)
}

func TestMessageAndItsDeliveryAgree(t *testing.T) {
	db := storetest.Open(t)
	store := deliveries.New(db)
	events, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := events.Close(); err != nil {
			t.Error(err)
		}
	})
	people, err := registry.Open(t.Context(), registry.Options{Store: control.New(db), Conditions: condition.New(), ParseAddress: address.Parse})
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
	recorder := record.Start(record.Options{Store: store, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(recorder.Stop)
	channel, _ := people.ChannelNamed("news", "email")
	now := time.Now()
	posted := &fanfare.AcceptedEvent{Service: "news", ReceivedAt: now, Seq: fanfare.NewEventSeq(20, 0),
		Direct: &fanfare.Direct{Channel: channel.Number, Recipients: []fanfare.Recipient{{Subscriber: fanfare.NewRowID(3, 1)}}}}
	f := &fanfare.MatchResult{Posted: posted, Messages: 1, KeptAt: now, MatchedAt: now, Manifests: plan.DirectManifests(posted.Seq, posted.Direct)}
	if _, err := store.Freeze(t.Context(), []*fanfare.MatchResult{f}, now); err != nil {
		t.Fatal(err)
	}
	ref := posted.Ref()
	recorder.Begin(ref, 1, fanfare.Progress{})
	kept := &changingStore{Store: store, happens: func() {
		err := recorder.Record(&fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: ref.Day, Manifest: f.Manifests[0].ID}, Attempt: 1, State: fanfare.Accepted, At: now, Channel: channel.Number}, nil)
		if err != nil {
			t.Error(err)
		}
	}}
	waiting := ingest.Queue{Log: events}
	traces := &report.Traces{Store: kept, Registry: people, Progress: recorder, Queue: waiting}
	m := New(Options{Registry: people, Recorder: recorder, Store: store, Traces: traces, Accepted: func(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) {
		posted, _, err := report.Accepted(ctx, waiting, store, ref)
		return posted, err
	}})
	got, err := m.Message(t.Context(), "news", ref)
	if err != nil || got.State != "accepted" || got.Delivery == nil || got.Delivery.State != "accepted" || got.Counts != (fanfare.Counts{fanfare.Accepted: 1}) || got.Stages.Completed.IsZero() {
		t.Errorf("%v, %+v, its delivery %+v", err, got, got.Delivery)
	}
}
