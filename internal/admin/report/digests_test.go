package report

import (
	"context"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

// toldLater is an event that was gathered for two digests, of which one is out. The other
// event that it tells of is number 0.
type toldLater struct{ event, other, digest fanfare.EventRef }

func (d toldLater) Gathered(_ context.Context, ref fanfare.EventRef) ([]fanfare.Gathering, error) {
	if ref != d.event {
		return nil, nil
	}
	return []fanfare.Gathering{
		{Cadence: "window 60s", Due: noon, Recipients: 2, Digest: d.digest.String()},
		{Cadence: "daily 08:00", Zone: "Europe/London", Due: noon.AddDate(0, 0, 1), Recipients: 7},
	}, nil
}

func (d toldLater) WaitingOf(context.Context, fanfare.EventRef, fanfare.RowID) ([]fanfare.Gathering, error) {
	return nil, nil
}

func (d toldLater) Waiting(context.Context, fanfare.EventRef, fanfare.RowID, fanfare.RowID) (*fanfare.Gathering, error) {
	return nil, nil
}

func (d toldLater) Items(_ context.Context, run fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error {
	if run != d.digest {
		return notFound
	}
	for _, n := range numbers {
		posted := &fanfare.AcceptedEvent{ReceivedAt: d.event.Day.Time(), Seq: [...]fanfare.EventSeq{d.other.Seq, d.event.Seq}[n]}
		if err := visit(fanfare.RunItem{Number: n, Posted: posted}); err != nil {
			return err
		}
	}
	return nil
}

func TestEventInADigestIsTraced(t *testing.T) {
	event, other, digest := refOf(0, 5), refOf(0, 6), refOf(1, 9)
	traces, r := newTraces(map[fanfare.EventRef][]int{event: nil, digest: nil})
	traces.Digests = toldLater{event, other, digest}
	r.broadcasts[event].Kind, r.broadcasts[digest].Kind = fanfare.KindEvent, fanfare.KindDigest
	ada, bob := fanfare.NewRowID(0, 1), fanfare.NewRowID(0, 2)
	r.manifests[digest] = []fanfare.Manifest{{ID: fanfare.NewManifestID(digest.Seq, 0), Sections: []fanfare.Section{{Channel: 1, Template: 3, Members: fanfare.MembersOf(
		fanfare.Member{Subscriber: ada, Subscriptions: []fanfare.RowID{3, 4}, Items: []fanfare.Item{{Number: 0, Subscription: 3}, {Number: 1, Subscription: 3}, {Number: 1, Subscription: 4}}},
		fanfare.Member{Subscriber: bob, Subscriptions: []fanfare.RowID{5}, Items: []fanfare.Item{{Number: 0, Subscription: 5}}},
	)}}}}
	b, err := traces.Broadcast(t.Context(), event)
	if err != nil || len(b.Gathered) != 2 || b.Gathered[0].Digest != digest.String() || b.Gathered[1].Recipients != 7 {
		t.Errorf("the event has %+v, %v", b.Gathered, err)
	}
	got, err := traces.DeliveryOf(t.Context(), event, "1@example.org")
	if err != nil || len(got) != 1 || got[0].Kind != fanfare.KindDigest || got[0].Event != digest.String() || !slices.Equal(got[0].Events, []string{other.String(), event.String()}) {
		t.Errorf("ada got %+v, %v", got, err)
	}
	if got, err = traces.DeliveryOf(t.Context(), event, "2@example.org"); err != nil || len(got) != 0 {
		t.Errorf("bob, who was told of the other one alone, got %+v, %v", got, err)
	}
	if got, err = traces.DeliveryOf(t.Context(), digest, "2@example.org"); err != nil || len(got) != 1 || !slices.Equal(got[0].Events, []string{other.String()}) {
		t.Errorf("of the digest bob got %+v, %v", got, err)
	}
}
