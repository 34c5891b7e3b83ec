package report

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
)

// Digests knows the events that wait for digests, and those of sent digests.
type Digests interface {
	// Gathered lists the digests that an event waits for or waited for.
	Gathered(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Gathering, error)
	// Waiting returns the digest of one subscription; nil if there is none.
	Waiting(ctx context.Context, ref fanfare.EventRef, subscriber, subscription fanfare.RowID) (*fanfare.Gathering, error)
	// WaitingOf lists the digests that an event waits for, of one subscriber.
	WaitingOf(ctx context.Context, ref fanfare.EventRef, subscriber fanfare.RowID) ([]fanfare.Gathering, error)
	// Items visits the events to which the messages of a digest refer by number.
	Items(ctx context.Context, run fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error
}

// tellEvents adds the events that they report to the messages of a digest.
func (t *Traces) tellEvents(ctx context.Context, run fanfare.EventRef, m *fanfare.Manifest, from uint32, list []fanfare.Delivery) error {
	var numbers []uint32
	for i := range list {
		_, member, _ := m.At(from + uint32(i))
		for _, item := range member.Items {
			numbers = append(numbers, item.Number)
		}
	}
	slices.Sort(numbers)
	ids := map[uint32]string{}
	err := t.Digests.Items(ctx, run, slices.Compact(numbers), func(item fanfare.RunItem) error {
		ids[item.Number] = item.Posted.Ref().String()
		return nil
	})
	if err != nil {
		return err
	}
	for i := range list {
		_, member, _ := m.At(from + uint32(i))
		for _, item := range member.Items {
			if id := ids[item.Number]; !slices.Contains(list[i].Events, id) {
				list[i].Events = append(list[i].Events, id)
			}
		}
	}
	return nil
}

// digestsOf finds the digests to a person that reported an event.
func (t *Traces) digestsOf(ctx context.Context, ref fanfare.EventRef, place fanfare.RowID) (list []fanfare.Delivery, err error) {
	gathered, err := t.Digests.Gathered(ctx, ref)
	if err != nil {
		return nil, err
	}
	for i := range gathered {
		run, ok := fanfare.ParseEventRef(gathered[i].Digest)
		if !ok {
			continue
		}
		b, err := t.Store.Broadcast(ctx, run)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := t.deliveriesOf(ctx, b, run, place)
		if err != nil {
			return nil, err
		}
		for j := range found {
			if slices.Contains(found[j].Events, ref.String()) {
				list = append(list, found[j])
			}
		}
	}
	return list, nil
}

// WaitingOf lists the digests to one recipient that an event waits for.
func (t *Traces) WaitingOf(ctx context.Context, ref fanfare.EventRef, recipient string) (list []fanfare.Gathering, err error) {
	b, err := t.broadcast(ctx, ref)
	if err != nil || b.State == queued || b.Kind != fanfare.KindEvent {
		return nil, err
	}
	places, err := t.Registry.SubscriberPlaces(ctx, b.Service, recipient)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		waiting, err := t.Digests.WaitingOf(ctx, ref, place)
		if err != nil {
			return nil, err
		}
		list = append(list, waiting...)
	}
	return list, nil
}
