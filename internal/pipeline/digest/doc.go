// Package gather holds back what is not told at once until it is due: it says for
// when a hit is gathered, publishes the run of a slot when its time has come, and
// makes of what was gathered for it what generation freezes.
//
// State. What waits is in the store, with the events that it is of: rows of members,
// and for each day the runs that they wait for. In memory are those runs, the rounds
// of matching that are under way, and until when each slot is closed.
//
// Failure. A row is kept in the transaction that freezes its event, and is in one
// place at any time. The run of a slot is an event: it may be published any number of
// times, and is frozen once. Only then do the days forget that something waits for it.
// So whatever ends the process, each run is sent once, with all that was gathered for
// it. What failed is tried again by the next step.
package digest
