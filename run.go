package fanfare

import (
	"fmt"
	"time"
)

// A Run sends the digests of a slot at one time. It is an event without a topic, and its messages are
// a broadcast like any other.
type Run struct {
	Slot    uint16    `json:"slot"` // 0 for subscriptions that have become immediate
	Due     time.Time `json:"due"`  // whole seconds
	Cadence string    `json:"cadence,omitempty"`
	Zone    string    `json:"zone,omitempty"`
}

// ID returns the id of the event. Two events with the same id are the same run.
func (r *Run) ID() string { return fmt.Sprintf("run-%d-%d", r.Slot, r.Due.Unix()) }

// Gathered holds the members of one event that wait for the next run of a slot. Its sections have
// no template, because the run selects it.
type Gathered struct {
	Slot     uint16
	Due      time.Time // whole seconds
	Manifest Manifest
}

// An Item is an event in a digest together with one of the member's subscriptions that matched it.
// An event that matched several subscriptions has one item for each, all with the same number.
type Item struct {
	Number       uint32 // in the run, in the order in which the events were accepted
	Subscription RowID
}

// A RunItem is an event of a run, in its stored form.
type RunItem struct {
	Number uint32
	Posted *AcceptedEvent
}
