package matching

import (
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A workload is a topic, its subscriptions and its events. Each is made from its
// number and the seed, so that none has to be kept and two runs see the same.
type workload interface {
	definition() condition.Definition
	// condition makes that of subscription i: a filter, or a rule and its params.
	condition(i int) (filter, rule string, params []byte)
	// event makes the data of event i.
	event(i int) []byte
	// bare is the same work with no conditions in it, for events 0 to events-1.
	bare(events int) limitMatch
}

// newWorkload makes those of the plan by id, for n subscriptions.
func newWorkload(id string, n int, seed uint64) (workload, error) {
	switch id {
	case "B1":
		return newPriceAlerts(n, seed, false), nil
	case "B1j":
		return newPriceAlerts(n, seed, true), nil
	case "B2":
		return thresholds{n, seed}, nil
	case "B3":
		return sharedFilter{n}, nil
	case "B4":
		return newTitleWordFilters(n, seed), nil
	case "B5":
		return newDistinctFilters(n, seed), nil
	case "B6":
		return newAdvertising(n, seed), nil
	}
	return nil, fmt.Errorf("no workload %q", id)
}

// placeOf is where subscription i lives: they go round the partitions, as those
// of subscribers do that come one after the other.
func placeOf(i int) fanfare.RowID {
	return fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
}

// entryOf makes subscription i as the index takes it. Every subscriber has one.
func entryOf(w workload, i int) condition.Entry {
	e := condition.Entry{Place: placeOf(i), Subscriber: placeOf(i), Channel: 1}
	e.Filter, e.Rule, e.Params = w.condition(i)
	return e
}
