package server

import (
	"context"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

// goingOn is a record of what was sent in which something happens when it is asked for
// manifests for the first time.
type goingOn struct {
	report.Store
	happens func()
}

func (g *goingOn) Manifests(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Manifest, error) {
	if happens := g.happens; happens != nil {
		g.happens = nil
		happens()
	}
	return g.Store.Manifests(ctx, ref)
}

func TestAMessageIsOfOneMoment(t *testing.T) {
	db, stops, _, _, _ := heldCast(t)
	channel, _ := stops.registry.ChannelNamed("news", "email")
	now := time.Now()
	posted := &fanfare.AcceptedEvent{Service: "news", ReceivedAt: now, Seq: fanfare.NewEventSeq(20, 0),
		Direct: &fanfare.Direct{Channel: channel.Number, Recipients: []fanfare.Recipient{{Subscriber: fanfare.NewRowID(3, 1)}}}}
	f := &fanfare.MatchResult{Posted: posted, Messages: 1, KeptAt: now, MatchedAt: now, Manifests: plan.Audience(posted.Seq, posted.Direct)}
	if _, err := stops.store.Freeze(t.Context(), []*fanfare.MatchResult{f}, now); err != nil {
		t.Fatal(err)
	}
	ref := posted.Ref()
	stops.recorder.Begin(ref, 1, fanfare.Progress{})
	kept := &goingOn{Store: stops.store, happens: func() {
		err := stops.recorder.Record(&fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: ref.Day, Manifest: f.Manifests[0].ID}, Attempt: 1, State: fanfare.Accepted, At: now, Channel: channel.Number}, nil)
		if err != nil {
			t.Error(err)
		}
	}}
	waiting := queue{db.bus}
	m := &messages{registry: stops.registry, recorder: stops.recorder, store: stops.store, queue: waiting,
		traces: &report.Traces{Store: kept, Registry: stops.registry, Progress: stops.recorder, Queue: waiting}}
	got, err := m.Message(t.Context(), "news", ref)
	if err != nil || got.State != "accepted" || got.Delivery == nil || got.Delivery.State != "accepted" || got.Counts != (fanfare.Counts{fanfare.Accepted: 1}) || got.Stages.Completed.IsZero() {
		t.Errorf("%v, %+v, its delivery %+v", err, got, got.Delivery)
	}
}
