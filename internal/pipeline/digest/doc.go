// Package digest holds back recipients until their digest is due. It determines for which run a
// recipient waits, publishes the run of each slot as an event when it is due, and merges the
// events that waited for a run into the result that matching freezes.
//
// # State
//
// The store contains the waiting work: manifests of the recipients of each event and, for each
// day, the runs for which its events wait. These runs, the rounds of matching in progress, and the
// time up to which each slot is closed are in memory.
//
// # Failure
//
// A manifest is stored in the transaction that freezes its event, and is in one place at any time.
// The run of a slot is an event: it may be published any number of times, and is frozen once. Only
// then is it removed from the days. Therefore, after a crash at any time, each run is sent
// once, with everything that waited for it. The next step repeats a failed operation.
package digest
