package fanfare

import (
	"context"
	"time"
)

// A Letter is one message for one recipient, ready to leave.
type Letter struct {
	Delivery DeliveryRef
	From     string // envelope sender, without angle brackets
	To       string // envelope recipient, without angle brackets
	Body     []byte // the message: header and body with CRLF line ends, not dot-stuffed
	UTF8     bool   // needs SMTPUTF8 (RFC 6531): an address or a header is not ASCII
	EightBit bool   // needs 8BITMIME (RFC 6152): the body has bytes above 127
	Undotted bool   // no line of Body begins with a dot; false says nothing

	// Enclosed follows Body and ends the message: the files that go with it, as they
	// stand in a mail. All letters that have them share the memory, which nobody
	// writes to. It is ASCII in lines that end with CRLF, none of which begins with a
	// dot. Empty: Body is all.
	Enclosed []byte

	// Share is that of the letters which are one message: they have the same From,
	// UTF8, EightBit, Body and Enclosed, and say nothing of who gets them. 0: it is
	// nobody else's.
	Share uint64

	// Alone returns the message as its recipient gets it who shares it with nobody after
	// all: addressed to him, and with his own link to unsubscribe. It is safe for
	// concurrent use, and makes the same message each time. Nil: the letter is that.
	Alone func() (Letter, error)

	// Work is the owner's own: who made the letter finds its bookkeeping here.
	Work any
}

// Size is how many bytes the message has.
func (l *Letter) Size() int { return len(l.Body) + len(l.Enclosed) }

// Verdict is a driver's typed answer about one attempt.
type Verdict uint8

// The verdicts. What follows from one (retry, failure) is decided by deliver,
// never by a driver.
const (
	Taken     Verdict = iota // the next hop took responsibility
	Temporary                // refused for now (4xx); try again later
	Permanent                // refused for good (5xx)
	Lost                     // the connection broke after the body was begun: the next hop may have it or not
)

// An Outcome is what came of one attempt.
type Outcome struct {
	Verdict Verdict
	Code    int       // the protocol's own code, such as the SMTP reply 250; 0 if there was none
	Text    string    // the reply's text, one line, at most 512 bytes of valid UTF-8
	Relay   string    // host:port that answered
	At      time.Time // when the answer was read

	// RetryAfter is how long the peer asks to be left alone (RFC 9110, section
	// 10.2.3); 0 if it said nothing. A driver sets it from a field of the protocol;
	// what is said in the text is read by the outlet.
	RetryAfter time.Duration

	Class Class // why; the outlet's word, where the driver left it empty
}

// A Desk hands letters to the connections of one channel and takes what came of
// them. Its methods are safe for concurrent use. A connection calls, for each
// letter: Next, then either Return (nothing of the body was written), or
// Release and Report.
type Desk interface {
	// Next returns the next letter. With wait it blocks until there is one, ctx
	// ends or the desk has been idle for its time-out; without, it returns nil
	// at once where there is none. A nil letter with a nil error means: nothing
	// to send now. The letter and its body belong to the connection until it is
	// returned or reported.
	Next(ctx context.Context, wait bool) (*Letter, error)

	// Release is asked immediately before the first byte of the letter's body
	// is written. False means that it must not leave (the person unsubscribed,
	// an operator paused or cancelled, the lease is short): the connection
	// writes nothing of the body and forgets the letter; the desk has settled
	// what there is to settle.
	Release(*Letter) bool

	// Report gives the outcome of a released letter, exactly once, and blocks
	// until the outcome is kept (synced in durability fsync). The connection
	// writes no further body before Report has returned. An error means that
	// nothing can be kept any more: the connection closes.
	Report(*Letter, Outcome) error

	// Return gives back a letter of which no byte of the body was written.
	Return(*Letter)
}

// An Elsewhere is a Desk of a channel that may have several next hops. A driver
// asks it where one refused a letter for now, before any byte of the body was
// written and before Release.
type Elsewhere interface {
	// Elsewhere reports whether the letter goes to another next hop at once,
	// without an attempt: it is not this connection's any more. Otherwise the
	// connection goes on to Release and Report.
	Elsewhere(*Letter, Outcome) bool
}

// A Together is a Desk that lets several letters leave at once, and takes at once
// what came of them. They are of one Share, or their next hop knows a letter again,
// so that one that comes twice replaces itself: only then is nobody told twice
// where the outcomes of many could not be kept.
type Together interface {
	Desk

	// ReleaseAll is Release for letters that leave together: all of them, or none.
	// The connection forgets those that must not leave; where there are such, the
	// others stay as they are, not released, and are what is left.
	ReleaseAll(letters []*Letter) (left []*Letter, released bool)

	// ReportAll gives the outcomes of several released letters as Report does that
	// of one, and blocks until all are kept.
	ReportAll(letters []*Letter, outcomes []Outcome) error
}

// A Companions is a Desk that finds the letters that are one message, so that a
// driver may send it once, to several recipients.
type Companions interface {
	Together

	// Companions appends to dst up to most letters with the Share of one that the
	// connection holds, and does not wait for any. They are the connection's then, as
	// if Next had handed them out.
	Companions(dst []*Letter, letter *Letter, most int) []*Letter
}

// A Driver is a way out. Each call of Serve is one connection (or its like).
type Driver interface {
	// Serve opens a connection, sends letters from desk until ctx ends or the
	// desk has nothing more (Next with wait gave nil), and closes it in good
	// order. Every letter it took has been reported or returned when it comes
	// back. It returns an error where the connection could not be made, or was
	// lost; a refusal of a letter is an outcome and not an error. When ctx ends,
	// a letter whose body was begun is still awaited, up to the driver's own
	// send time-out.
	Serve(ctx context.Context, desk Desk) error
}
