// Package driver is the contract between package deliver and the drivers of channels: the
// message, the queue that hands out messages, and the outcome of an attempt. Package render
// fills messages, package deliver implements Queue, and its subpackages smtp, webhook, file
// and capture implement Driver.
package driver

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// A Message is one message for one recipient, ready to send.
type Message struct {
	Delivery      fanfare.DeliveryRef
	Subscriber    fanfare.RowID // the row of the recipient; 0 if the driver runs on another node
	From          string        // envelope sender, without angle brackets
	To            string        // envelope recipient, without angle brackets
	Body          []byte        // the message: header and body with CRLF line ends, not dot-stuffed
	UTF8          bool          // needs SMTPUTF8 (RFC 6531): an address or a header is not ASCII
	EightBit      bool          // needs 8BITMIME (RFC 6152): the body has bytes above 127
	NoDotStuffing bool          // no line of Body begins with a dot; false if unknown

	// Attachments follows Body and ends the message: the attached files, encoded as MIME
	// parts. It is ASCII in lines that end with CRLF, none of which begins with a dot. All
	// messages of a batch share the memory, which must not be changed. It is empty if Body is
	// the whole message.
	Attachments []byte

	// SharedContent is equal for messages that have the same From, UTF8, EightBit, Body and
	// Attachments and do not name their recipient, so that one transaction can carry them. It
	// is 0 if no other message has this content.
	SharedContent uint64

	// Individual returns the message as its recipient would receive it without sharing:
	// addressed to that person, with a personal unsubscribe link. It is safe for concurrent
	// use and returns the same message each time. It is nil if the message is individual.
	Individual func() (Message, error)

	// Owner belongs to the queue, which finds its own record of the message here.
	Owner any
}

// Size returns the number of bytes of the message.
func (m *Message) Size() int { return len(m.Body) + len(m.Attachments) }

// Verdict is the driver's typed answer about one attempt. Package deliver decides what
// follows from it (retry or failure); a driver never does.
type Verdict uint8

// The verdicts.
const (
	Accepted  Verdict = iota // the next hop took responsibility
	Temporary                // refused for now (4xx); try again later
	Permanent                // refused for good (5xx)
	Lost                     // the connection was lost after the body was started: the next hop may have the message
)

// An Outcome is the result of one attempt.
type Outcome struct {
	Verdict   Verdict
	Delivered bool      // of an accepted message: it is in the mailbox of its recipient
	Code      int       // the protocol's own code, such as the SMTP reply 250; 0 if there was none
	Text      string    // the text of the reply, one line, at most 512 bytes of valid UTF-8
	Relay     string    // host:port that answered
	At        time.Time // when the answer was read

	// RetryAfter is the time for which the peer asks to receive nothing (RFC 9110, section
	// 10.2.3), 0 if it did not ask. A driver sets it from a field of the protocol; package
	// deliver also reads it from the text.
	RetryAfter time.Duration

	Class fanfare.Class // the reason; package deliver fills it in if the driver left it empty
}

// A Queue hands out the messages of one connection of a channel and receives their outcomes. Its
// methods are safe for concurrent use. For each message, a connection calls Next and then
// either Return (it wrote nothing of the body), or Release and Report.
type Queue interface {
	// Next returns the next message. With wait it blocks until there is one, ctx ends or the
	// queue has been idle for its timeout; without wait it immediately returns nil if there is
	// none. A nil message with a nil error means that there is nothing to send now. The
	// message and its body belong to the connection until it returns or reports the message.
	Next(ctx context.Context, wait bool) (*Message, error)

	// TakeSameContent appends to dst up to most messages with the SharedContent of a message
	// that the connection holds, without waiting for any. They belong to the connection as if
	// Next had returned them.
	TakeSameContent(dst []*Message, message *Message, most int) []*Message

	// Failover reports whether the queue immediately passes the message to another next hop,
	// without counting an attempt. A driver asks when a next hop refused a message for now,
	// before any
	// byte of the body was written and before Release. The connection forgets a message that
	// goes to another next hop, and continues with Release and Report otherwise.
	Failover(message *Message, outcome Outcome) bool

	// Release is called immediately before the first byte of the body is written. It returns
	// false if the message must not be sent (the recipient unsubscribed, an operator paused or
	// cancelled it, or its lease is about to end): the connection writes nothing of the body
	// and forgets the message, which the queue has settled.
	Release(message *Message) bool

	// ReleaseAll is Release for messages that are sent together: all of them or none. The
	// connection forgets those that must not be sent; the others, which ReleaseAll returns as
	// left, are then still not released.
	ReleaseAll(messages []*Message) (left []*Message, released bool)

	// Report passes on the outcome of a released message, exactly once, and blocks until it is
	// recorded (synced in durability mode fsync). The connection writes no further body before
	// Report has returned. After an error, nothing more can be recorded, and the connection
	// closes.
	Report(message *Message, outcome Outcome) error

	// ReportAll is Report for several released messages and blocks until all outcomes are
	// recorded. They have the same SharedContent, or their next hop recognises a message that
	// it receives twice: otherwise recipients would get duplicates after a failed commit.
	ReportAll(messages []*Message, outcomes []Outcome) error

	// Return gives back a message if no byte of its body was written.
	Return(message *Message)
}

// A Driver sends the messages of a channel. Each call of Serve is one connection or its
// equivalent.
type Driver interface {
	// Serve opens a connection, sends messages from queue until ctx ends or the queue has
	// nothing more (Next with wait returned nil), and closes the connection properly. Before
	// it returns, it has reported or returned every message that it took. It returns an error
	// if the connection could not be opened or was lost; the refusal of a message is an
	// outcome and not an error. When ctx ends, Serve still waits for the answer to a body that
	// it has begun, up to the driver's own send timeout.
	Serve(ctx context.Context, queue Queue) error
}

// A BatchDriver also delivers the messages of a batch in one step. It recognises a message that it gets twice, so that the outcomes of a batch
// can be recorded together.
type BatchDriver interface {
	Driver
	// DeliverAll delivers messages and returns an outcome for each. It finishes a step that it has begun, also after ctx has ended.
	DeliverAll(ctx context.Context, messages []*Message) []Outcome
}
