package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// gatheredStatus says what waits for digests. To sum it up takes the store a look at
// all of it, so an answer is good for a while.
type gatheredStatus struct {
	report digestReport
	clock  clock.Clock

	mu    sync.Mutex
	found []wire.Gathered
	until time.Time
}

const (
	gatheredFor = 10 * time.Second
	maxGathered = 100
)

// list returns what waits, the next due first.
func (g *gatheredStatus) list(ctx context.Context) ([]wire.Gathered, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if now.Before(g.until) {
		return g.found, nil
	}
	days, err := g.report.Days(ctx)
	if err != nil {
		return nil, err
	}
	type run struct {
		slot uint16
		due  int64
	}
	sums := map[run]*deliveries.Waiting{}
	for _, day := range days {
		all, err := g.report.Gatherings(ctx, day)
		if fanfare.CodeOf(err) == fanfare.NotFound {
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
		named := g.report.Describe(w)
		found = append(found, wire.Gathered{Service: w.Service, Cadence: named.Cadence, Zone: named.Zone, Due: named.Due, Recipients: named.Recipients})
	}
	slices.SortFunc(found, func(a, b wire.Gathered) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cadence, b.Cadence), cmp.Compare(a.Zone, b.Zone))
	})
	g.found, g.until = found[:min(len(found), maxGathered)], now.Add(gatheredFor)
	return g.found, nil
}
