// Package match reads events from the stream EVENTS, finds the subscriptions that match each
// of them, writes the result to the store and publishes its batches to BATCHES. The server runs
// one Matcher for each lane.
//
// # The path of an event
//
// A Matcher reads groups of events ahead, so that a service that posts many events does not
// delay the others (groups.go), and holds back the events of topics with a window (window.go).
// It processes events in rounds. For each event it queries the index, whose answer package
// verify checks, narrows the result to the audience of the event (audience.go), and lets
// package plan group the subscriptions by recipient. Events of a topic with a key also read and
// change the state
// of their key (state.go). The round is then frozen: its results are committed to the store,
// the batches are published, and the groups are acknowledged (freeze.go).
//
// # State
//
// None is durable. The groups that were read ahead, under their leases, and samples of events
// for reports are in memory.
//
// # Failure
//
// A group is acknowledged only after all of its events are frozen and their batches are
// published. After a failure before that, the group is delivered again; an event that was
// frozen before keeps its manifests. A group that fails fanfare.MaxFailures times is parked,
// and so is
// an event that cannot be matched at all.
package match
