package deliver

import (
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Job is one delivery that is to be attempted.
type Job struct {
	Message       driver.Message
	Subscriber    fanfare.RowID
	Subscriptions []fanfare.RowID
	RequiresAll   bool        // the message speaks of each of the subscriptions: with any of them that ends it is out of date
	Destination   string      // who will answer: the address's domain in lower case, host:port of a webhook, "" of a file
	Attempt       uint16      // number of this try, from 1
	Expires       time.Time   // after that it must not be tried any more; zero: never
	Quiet         QuietPeriod // when it must not be tried next; zero: it may at any time
	GateState     uint64      // what the gate remembers between two questions about it; 0: nothing
	Requested     bool        // its recipient just asked for it

	batch            *Batch
	inFlightIndex    int           // its place among those on the wire, from 1; 0: it is not
	landed           chan struct{} // closed when the message is off the wire; made by who waits
	abandoned        int           // how many connections ended without a word about it
	broadcastCounted bool          // counted by the rate of its broadcast

	reserved int // messages that were counted with this one, for others of its group

	holder             *connQueue // the connection that has it
	prefetched         bool       // was taken while the connection was busy with others
	grouped            bool       // leaves with another, which counts as under way
	sameReply          bool       // its answer is that of the one before
	takenAt            time.Time  // when a connection took it
	fastBefore         fastCounts // what its relay, and its destination, had been quick with then
	overtaken          int64      // how many messages to others its relay was quick with while it had this one
	active             bool       // a connection has it
	budgets            []Budget   // that it counts in
	relay              *relay     // that of the connection
	overdue            bool       // for longer than most take
	older, newer       *Job       // those that are under way for longer, and for less long
	dest               *destination
	probe              bool   // its answer decides whether its destination is left alone
	readmitted         bool   // has waited aside for its destination, and is back
	destinationCounted bool   // counted by the rate of its destination
	sharesSlot         bool   // another of its group counts as under way to its destination
	groupID            uint64 // number of those that leave together

	refusedBy []*relay // for reasons of their own, before anything of it left
}

// maxAbandoned is how many connections may leave a job behind before that counts as
// an attempt.
const maxAbandoned = 5

// A Batch is a set of jobs under one lease.
type Batch struct {
	Lane     fanfare.Lane
	Flow     Flow // takes turns with the others of its lane
	Jobs     []Job
	LeaseEnd func() time.Time // until when the lease is sure
	// Left is called for each job when it is over for this batch: its outcome is
	// kept, or it goes back. It must not call the outlet.
	JobDone func(*Job)
	// Finish is called once, when no job is left in the outlet. Held jobs are
	// paused; again jobs could not be tried under this lease.
	Finish func(held, again int)

	unsettled    int // jobs in the outlet or on the wire; guarded by the outlet
	held, unsent int
}

// Decision is what the gate says of a job that is about to leave.
type Decision uint8

// The decisions.
const (
	Go       Decision = iota
	Hold              // paused: the batch is held back
	Cancel            // cancelled by an operator
	Suppress          // nobody wants it any more
	Reload            // it says what is not so any more: its batch is loaded again
	expired           // its time ran out; said by the outlet and not by the gate
	quietNow          // it is quiet hours now; said by the outlet and not by the gate
)

// A Gate is asked immediately before a message leaves. It must be quick, and
// safe for concurrent use.
type Gate interface {
	Check(*Job) (Decision, string)
}

// A Recorder keeps outcomes; Record blocks until the entry is durable. A message
// that leaves is announced by Expect, and its entry goes to RecordExpected, so
// that entries on their way can share a commit. RecordGroup is for entries of
// one day, of which some were announced: it keeps all or nothing.
type Recorder interface {
	Expect()
	RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error
	RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error
	Record(entry *fanfare.Entry, due *fanfare.Due) error
	// Postpone keeps work of one day for later, without an attempt: it comes back
	// with the same number. It blocks until that is durable.
	Postpone(day fanfare.Day, dues []fanfare.Due) error
}
