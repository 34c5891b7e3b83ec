package server

import (
	"context"
	"errors"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// digestReport says what is told in digests, and what of it waits.
type digestReport struct {
	*deliveries.Store
	registry *registry.Registry
}

// Gathered says what of an event waits, or waited, for a digest.
func (d digestReport) Gathered(ctx context.Context, ref fanfare.EventRef) (list []fanfare.Gathering, err error) {
	waiting, err := d.GatheredOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		one, err := d.gathering(ctx, &waiting[i])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b fanfare.Gathering) int { return a.Due.Compare(b.Due) })
	return list, nil
}

func (d digestReport) gathering(ctx context.Context, w *deliveries.Waiting) (g fanfare.Gathering, err error) {
	g = d.Describe(w)
	run, frozen, err := d.RunAt(ctx, w.Slot, w.Due)
	if frozen {
		g.Digest = run.String()
	}
	return g, err
}

// named says for what something waits.
func (d digestReport) Describe(w *deliveries.Waiting) fanfare.Gathering {
	g := fanfare.Gathering{Cadence: "immediate", Due: w.Due, Recipients: w.Members}
	if slot, ok := d.registry.Slot(w.Slot); ok {
		g.Cadence, g.Zone = slot.Cadence.String(), slot.Zone.String()
	}
	return g
}

// errFound ends a search.
var errFound = errors.New("found")

// Waiting finds the digest that an event waits, or waited, for with a subscription;
// nil if it was not gathered for it.
func (d digestReport) Waiting(ctx context.Context, ref fanfare.EventRef, subscriber, subscription fanfare.RowID) (*fanfare.Gathering, error) {
	waiting, err := d.GatheredOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		w := &waiting[i]
		err := d.EachMember(ctx, ref.Day, w, subscriber, func(event fanfare.EventRef, member *fanfare.Member) error {
			if event == ref && slices.Contains(member.Subscriptions, subscription) {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			g, err := d.gathering(ctx, w)
			return &g, err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// WaitingOf finds the digests for which an event waits that are for a subscriber.
func (d digestReport) WaitingOf(ctx context.Context, ref fanfare.EventRef, subscriber fanfare.RowID) (list []fanfare.Gathering, err error) {
	waiting, err := d.GatheredOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		w := &waiting[i]
		err := d.EachMember(ctx, ref.Day, w, subscriber, func(event fanfare.EventRef, _ *fanfare.Member) error {
			if event == ref {
				return errFound
			}
			return nil
		})
		if err == nil {
			continue
		}
		if !errors.Is(err, errFound) {
			return nil, err
		}
		g, err := d.gathering(ctx, w)
		if err != nil {
			return nil, err
		}
		if g.Recipients = 1; g.Digest == "" {
			list = append(list, g)
		}
	}
	return list, nil
}

// eachGathered visits the members of one subscriber in what was gathered on a day
// for a run.
func (d digestReport) EachMember(ctx context.Context, day fanfare.Day, w *deliveries.Waiting, subscriber fanfare.RowID, visit func(fanfare.EventRef, *fanfare.Member) error) error {
	return d.Store.Gathered(ctx, day, w.Slot, w.Due, func(m *fanfare.Manifest) error {
		for _, position := range m.PositionsOf(subscriber) {
			_, member, _ := m.At(position)
			if err := visit(fanfare.EventRef{Day: day, Seq: m.ID.Event()}, &member); err != nil {
				return err
			}
		}
		return nil
	})
}
