// Package limit says when a next message may leave: rates, windows of what may
// be under way, and breakers. It does no I/O, starts nothing, and is told the
// time with each call, so that a test sets the clock.
//
// State. All of it is in memory and is learnt again after a start; only quotas
// of a day outlive one, by blocks that their owner keeps (Quota).
//
// Failure. Nothing here follows from a single answer: a window shrinks when two
// answers of a round were bad, a rate is found by two refusals, and a breaker
// opens after several failures in a row.
//
// None of the types is safe for concurrent use unless it says so: their owner
// asks and tells them under its own lock.
package limit
