package bounce

import "fanfare.dev/fanfare"

// Outcome is what a report says has happened.
type Outcome uint8

// The outcomes.
const (
	Unknown    Outcome = iota // nothing that is known; a person's answer, most likely
	Failed                    // it was not delivered and will not be
	Delayed                   // it is not delivered yet and is tried again; nothing follows
	Delivered                 // it is in the mailbox, or was read
	Relayed                   // it went on to where nothing is reported from
	Complained                // the reader called it junk
	AutoReply                 // a program answered: an absence, a ticket, a receipt of reading
	Challenged                // a program wants the sender to prove that he is a person
)

var outcomeNames = [...]string{"unknown", "failed", "delayed", "delivered", "relayed", "complained", "auto_reply", "challenged"}

// String returns the outcome's name as logs and metrics spell it.
func (o Outcome) String() string { return outcomeNames[o] }

// A Report is what something that came back says of one recipient.
type Report struct {
	Outcome   Outcome
	Class     fanfare.Class // why, of Failed and Delayed; the zero one: nobody knows
	Certain   bool          // of ClassInvalid: the status and the words both say that there is no such mailbox
	Recipient string        // whom it names, "" if nobody; as it was sent to, where it says that
	Status    string        // enhanced status code, such as 5.1.1 (RFC 3463); "" without one
	Code      int           // reply code of SMTP, 0 without one
	Text      string        // what the server said, one line of at most MaxText bytes
	Relay     string        // who said it, "" if that is not told
	Feedback  string        // of a complaint: its Feedback-Type, such as abuse (RFC 5965, section 3.1)

	// Of the message that came back, where it came back with it: what Fanfare wrote
	// and can verify.
	ReturnPath  string   // its envelope sender
	Unsubscribe []string // the URIs of its List-Unsubscribe
}

// MaxText is the longest Text of a Report, in bytes.
const MaxText = 512
