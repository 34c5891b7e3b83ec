package deliver

import (
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Job is one delivery to attempt.
type Job struct {
	Message       driver.Message
	Subscriber    fanfare.RowID
	Subscriptions []fanfare.RowID
	RequiresAll   bool        // the message lists each subscription, so it is outdated when any of them ends
	Destination   string      // who replies: the domain of the address in lower case, host:port of a webhook, "" of a file
	Attempt       uint16      // number of this attempt, from 1
	Expires       time.Time   // no attempt after this time; zero: never
	Quiet         QuietPeriod // the next quiet hours; zero: none
	GateState     uint64      // for the gate, which keeps the result of an earlier check here
	Requested     bool        // the recipient just asked for the message

	batch            *Batch
	inFlightIndex    int           // in inFlightJobs, from 1; 0: not in flight
	landed           chan struct{} // closed when the job is no longer in flight; AwaitInFlight creates it
	abandoned        int           // connections that ended without reporting it
	broadcastCounted bool          // counted by the rate of its broadcast

	reserved int // further messages of its group that were counted with it

	holder             *connQueue // the connection that holds it
	prefetched         bool       // taken while the connection was busy with others
	grouped            bool       // sent with another job, which counts as active
	sameReply          bool       // its reply is that of the previous message
	takenAt            time.Time  // when a connection took it
	fastBefore         fastCounts // fast messages of its relay and its destination at that time
	overtaken          int64      // messages to others that its relay handled fast in the meantime
	active             bool       // a connection holds it
	budgets            []Budget   // that count it
	relay              *relay     // of the connection
	overdue            bool       // takes longer than most
	older, newer       *Job       // neighbours in the list of active jobs
	dest               *destination
	probe              bool   // its reply decides whether the suspension of its destination ends
	readmitted         bool   // was throttled and is back in the queue
	destinationCounted bool   // counted by the rate of its destination
	sharesSlot         bool   // another message of its group counts as active for its destination
	groupID            uint64 // equal for messages that are sent together

	refusedBy []*relay // for reasons of their own, before a byte of the body was written
}

// maxAbandoned is the number of connections that may abandon a job before that counts as an
// attempt.
const maxAbandoned = 5

// A Batch is a set of jobs under one lease.
type Batch struct {
	Lane     fanfare.Lane
	Flow     Flow // takes turns with the other flows of its lane
	Jobs     []Job
	LeaseEnd func() time.Time // time until which the lease is certain
	// JobDone is called when the batch is done with a job: its outcome is recorded, or it
	// stays unsettled. It must not call the sender.
	JobDone func(*Job)
	// Finish is called once, when the sender has no job of the batch left. held jobs are
	// paused; again jobs could not be attempted under this lease.
	Finish func(held, unsent int)

	unsettled    int // jobs that the sender still has; the sender's lock guards it
	held, unsent int
}

// Decision is the gate's decision about a job that is about to be sent.
type Decision uint8

// The decisions.
const (
	Go       Decision = iota
	Hold              // paused: the batch is held
	Cancel            // an operator cancelled it
	Suppress          // no subscription requires it any longer
	Reload            // the message is outdated: load its batch again
	expired           // too late; set by the sender, not by the gate
	quietNow          // in quiet hours; set by the sender, not by the gate
)

// A Gate is asked immediately before a message is sent. It must be fast, and safe for
// concurrent use.
type Gate interface {
	Check(*Job) (Decision, string)
}

// A Recorder records outcomes. Record blocks until the entry is durable. Expect announces
// an entry when its message is released, and RecordExpected records it, so that entries of
// many connections can share a commit. RecordGroup records entries of one day, all or none;
// expected is how many of them were announced.
type Recorder interface {
	Expect()
	RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error
	RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error
	Record(entry *fanfare.Entry, due *fanfare.Due) error
	// Postpone records that work of one day becomes due later, without an attempt. It
	// blocks until that is durable.
	Postpone(day fanfare.Day, dues []fanfare.Due) error
}

// ChannelDeleted is the recorded reason of deliveries that were cancelled with their channel.
const ChannelDeleted = "the channel was deleted"
