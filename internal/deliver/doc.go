// Package deliver sends. An Outlet is one channel's way out: it takes batches
// of jobs, spreads their jobs over its connections, asks the gate once more
// before each message leaves, decides what follows from the driver's answer,
// and has the outcome recorded before the connection sends the next body.
//
// State. Nothing is kept here: a batch belongs to a lease of the bus, and ends
// with one word to its owner (Finish), when each of its jobs was settled,
// deferred, or left alone.
//
// Failure. A relay that cannot be reached consumes no attempts: jobs wait in
// the outlet while connections are tried with growing pauses. A connection that
// breaks under a message defers that message. A panic of a driver counts as a
// broken connection: a message that it had begun is deferred, the others leave
// by the next one.
package deliver

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Job is one delivery that is to be attempted.
type Job struct {
	Letter        fanfare.Letter
	Subscriber    fanfare.Place
	Subscriptions []fanfare.Place
	Attempt       uint16    // number of this try, from 1
	Expires       time.Time // after that it must not be tried any more; zero: never

	batch   *Batch
	offWire chan struct{} // closed when the letter is off the wire; made by who waits
	left    int           // how many connections ended without a word about it
}

// maxLeft is how many connections may leave a job behind before that counts as
// an attempt.
const maxLeft = 5

// A Batch is a set of jobs under one lease.
type Batch struct {
	Lane   fanfare.Lane
	Jobs   []Job
	Leased func() time.Time // until when the lease is sure
	// Left is called for each job when it is over for this batch: its outcome is
	// kept, or it goes back. It must not call the outlet.
	Left func(*Job)
	// Finish is called once, when no job is left in the outlet. Held jobs are
	// paused; again jobs could not be tried under this lease.
	Finish func(held, again int)

	left        int // jobs in the outlet or on the wire; guarded by the outlet
	held, again int
}

// Decision is what the gate says of a job that is about to leave.
type Decision uint8

// The decisions.
const (
	Go       Decision = iota
	Hold              // paused: the batch is held back
	Cancel            // cancelled by an operator
	Suppress          // nobody wants it any more
	expire            // its time ran out; said by the outlet and not by the gate
)

// A Gate is asked immediately before a message leaves. It must be quick, and
// safe for concurrent use.
type Gate interface {
	Check(*Job) (Decision, string)
}

// A Recorder keeps outcomes; Record blocks until the entry is durable. A message
// that leaves is announced by Expect, and its entry goes to RecordExpected, so
// that entries on their way can share a commit.
type Recorder interface {
	Expect()
	RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error
	Record(entry *fanfare.Entry, due *fanfare.Due) error
}
