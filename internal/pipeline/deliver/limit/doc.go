// Package limit decides when the next message may be sent: rates, daily quotas, windows of
// active messages, and circuit breakers. It does no I/O and starts no goroutine. The caller
// passes the time to each call, so that tests can set it. Package deliver uses all types,
// and package channels creates the shared rates and the quotas.
//
// State. Everything is in memory and is learned again after a start. Only a Quota outlives
// the process, in blocks that its owner stores.
//
// A single reply changes nothing: a window shrinks after two bad replies of a round, a rate
// is learned from two refusals, and a breaker opens after several failures in a row.
//
// A type is not safe for concurrent use unless its comment states this: the owner's lock guards
// it.
package limit
