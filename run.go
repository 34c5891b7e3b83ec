package fanfare

import (
	"fmt"
	"time"
)

// A Run sends the digests of a slot at one time. It is an event without a topic, and its messages are
// a broadcast like any other.
type Run struct {
	Slot    uint16    `json:"slot"` // 0: for subscriptions that have become immediate
	Due     time.Time `json:"due"`  // whole seconds
	Cadence string    `json:"cadence,omitempty"`
	Zone    string    `json:"zone,omitempty"`
}

// ID returns the id of the event. Two events with the same id are one run.
func (r *Run) ID() string { return fmt.Sprintf("run-%d-%d", r.Slot, r.Due.Unix()) }

// Gathered has the members of one event who wait for the next run of a slot. Its sections have no
// template, which depends on the run.
type Gathered struct {
	Slot     uint16
	Due      time.Time // whole seconds
	Manifest Manifest
}

// An Item is an event in a digest, with one of the member's subscriptions that it matched. An event
// that several subscriptions match has several items with the same number.
type Item struct {
	Number       uint32 // in the run, in the order in which the events were accepted
	Subscription RowID
}

// A RunItem is an event of a run, as it is stored with the run.
type RunItem struct {
	Number uint32
	Posted *AcceptedEvent
}
