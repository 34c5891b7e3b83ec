package matching

import (
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A workload is a topic with its subscriptions and events. Each of them is made from its
// number and the seed, so that none has to be stored and two runs see the same.
type workload interface {
	definition() condition.Definition
	// condition returns the condition of subscription i: a filter, or a rule and its
	// params.
	condition(i int) (filter, rule string, params []byte)
	// event returns the data of event i.
	event(i int) []byte
	// bare returns the same work without conditions, for events 0 to events-1.
	bare(events int) limitMatch
}

// newWorkload returns the workload of an experiment for n subscriptions.
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
	return nil, fmt.Errorf("unknown workload %q", id)
}

// placeOf returns the row id of subscription i. The ids go through the partitions in
// turn, as those of consecutive subscribers do.
func placeOf(i int) fanfare.RowID {
	return fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
}

// entryOf returns subscription i in the form of the index. Every subscriber has one
// subscription.
func entryOf(w workload, i int) condition.Entry {
	e := condition.Entry{Place: placeOf(i), Subscriber: placeOf(i), Channel: 1}
	e.Filter, e.Rule, e.Params = w.condition(i)
	return e
}
