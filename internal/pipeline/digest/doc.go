// Package digest holds back recipients until their digest is due. It says for which run a
// recipient waits, publishes the run of each slot as an event when its time has come, and merges
// what has waited for a run into the result that matching freezes.
//
// # State
//
// The store has what waits: manifests of the recipients of each event, and for each day the runs
// for which its events wait. In memory are these runs, the rounds of matching in progress, and the
// time up to which each slot is closed.
//
// # Failure
//
// A manifest is stored in the transaction that freezes its event, and is in one place at any time.
// The run of a slot is an event: it may be published any number of times, and is frozen once. Only
// then is it removed from the days. So after a crash at any time, each run is sent once, with
// everything that waited for it. The next step repeats what failed.
package digest
