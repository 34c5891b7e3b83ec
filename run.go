package fanfare

import (
	"fmt"
	"time"
)

// A Run is what sends a digest: all that was gathered for a slot until its time.
// It is an event of its own, without a topic, and what it sets off is a broadcast
// like any other.
type Run struct {
	Slot    uint16    `json:"slot"` // 0: what waited for people who want it at once now
	Due     time.Time `json:"due"`  // whole seconds
	Cadence string    `json:"cadence,omitempty"`
	Zone    string    `json:"zone,omitempty"`
}

// ID is the id of the event. Two of one id are one run.
func (r *Run) ID() string { return fmt.Sprintf("run-%d-%d", r.Slot, r.Due.Unix()) }

// Gathered are the members of one event, in a run of partitions, who get it with
// a slot's next run. Their sections have no template: that is the run's.
type Gathered struct {
	Slot     uint16
	Due      time.Time // whole seconds
	Manifest Manifest
}

// An Item is an event in a member of a run's manifest, and one of the member's
// subscriptions that wanted it. An event that several of them wanted is several
// items of one number.
type Item struct {
	Number       uint32 // in the run; in the order in which the events were accepted
	Subscription RowID
}

// A RunItem is the event behind a number, as it is kept with the run.
type RunItem struct {
	Number uint32
	Posted *AcceptedEvent
}
