// Package demo shows Fanfare at work on real data: a whole server in this
// process, people with wishes, the events of one of the examples, and a mail server
// that takes everything and keeps count.
//
// State: a data directory, which must not hold anything before, and is removed
// at the end unless it was named. The people are made from a seed; the same
// seed gives the same people.
//
// Failure: what was sent is held against what the capture server counted. Where
// the two differ, or anything was refused, Run prints all the same what
// happened, and then returns an error.
package demo
