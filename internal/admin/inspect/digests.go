package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Digests reports which events wait, or have waited, for digests.
type Digests struct {
	*deliveries.Store
	Registry *registry.Registry
}

// Gathered lists the digests for which recipients of an event wait, or have waited.
func (d Digests) Gathered(ctx context.Context, ref fanfare.EventRef) (list []fanfare.Gathering, err error) {
	waiting, err := d.GatheredOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		one, err := d.describe(ctx, &waiting[i])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b fanfare.Gathering) int { return a.Due.Compare(b.Due) })
	return list, nil
}

func (d Digests) describe(ctx context.Context, w *deliveries.Waiting) (g fanfare.Gathering, err error) {
	g = d.Describe(w)
	run, frozen, err := d.RunAt(ctx, w.Slot, w.Due)
	if frozen {
		g.Digest = run.String()
	}
	return g, err
}

// Describe returns the cadence and the time until which recipients wait.
func (d Digests) Describe(w *deliveries.Waiting) fanfare.Gathering {
	g := fanfare.Gathering{Cadence: "immediate", Due: w.Due, Recipients: w.Members}
	if slot, ok := d.Registry.Slot(w.Slot); ok {
		g.Cadence, g.Zone = slot.Cadence.String(), slot.Zone.String()
	}
	return g
}

// errFound ends a search.
var errFound = errors.New("found")

// Waiting returns the digest for which an event waits, or has waited, for one subscription, or nil if there is none.
func (d Digests) Waiting(ctx context.Context, ref fanfare.EventRef, subscriber, subscription fanfare.RowID) (*fanfare.Gathering, error) {
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
			g, err := d.describe(ctx, w)
			return &g, err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// WaitingOf lists the digests for which an event waits for one subscriber.
func (d Digests) WaitingOf(ctx context.Context, ref fanfare.EventRef, subscriber fanfare.RowID) (list []fanfare.Gathering, err error) {
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
		g, err := d.describe(ctx, w)
		if err != nil {
			return nil, err
		}
		if g.Recipients = 1; g.Digest == "" {
			list = append(list, g)
		}
	}
	return list, nil
}

// EachMember visits the events of a day that wait for a run for one subscriber.
func (d Digests) EachMember(ctx context.Context, day fanfare.Day, w *deliveries.Waiting, subscriber fanfare.RowID, visit func(fanfare.EventRef, *fanfare.Member) error) error {
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

// DigestStatus sums up the events that wait for digests. A sum must read all of them, so its result is reused for statusAge.
type DigestStatus struct {
	Digests Digests
	Clock   clock.Clock

	mu    sync.Mutex
	list  []wire.Gathered
	until time.Time
}

const (
	statusAge     = 10 * time.Second
	maxStatusList = 100
)

// List returns the waiting digests, next due first.
func (s *DigestStatus) List(ctx context.Context) ([]wire.Gathered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if now.Before(s.until) {
		return s.list, nil
	}
	days, err := s.Digests.Days(ctx)
	if err != nil {
		return nil, err
	}
	type run struct {
		slot uint16
		due  int64
	}
	sums := map[run]*deliveries.Waiting{}
	for _, day := range days {
		all, err := s.Digests.Gatherings(ctx, day)
		if fanfare.CodeOf(err) == fanfare.NotFound { // the day was removed
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range all {
			key := run{all[i].Slot, all[i].Due.Unix()}
			if known := sums[key]; known != nil {
				known.Members += all[i].Members
			} else {
				sums[key] = &all[i]
			}
		}
	}
	var found []wire.Gathered
	for _, w := range sums {
		named := s.Digests.Describe(w)
		found = append(found, wire.Gathered{Service: w.Service, Cadence: named.Cadence, Zone: named.Zone, Due: named.Due, Recipients: named.Recipients})
	}
	slices.SortFunc(found, func(a, b wire.Gathered) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cadence, b.Cadence), cmp.Compare(a.Zone, b.Zone))
	})
	s.list, s.until = found[:min(len(found), maxStatusList)], now.Add(statusAge)
	return s.list, nil
}
