package bounce

import (
	"time"

	"fanfare.dev/fanfare"
)

// Outcome is the event that a report describes.
type Outcome uint8

// The outcomes.
const (
	Unknown    Outcome = iota // no known content; most likely the reply of a person
	Failed                    // not delivered, and no more attempts
	Delayed                   // not delivered yet, with more attempts
	Delivered                 // in the mailbox, or read
	Relayed                   // passed on to a server that sends no reports
	Complained                // the recipient reported it as spam
	AutoReply                 // automatic reply: an absence, a ticket, a read receipt
	Challenged                // a program asks the sender to prove that they are a person
)

var outcomeNames = [...]string{"unknown", "failed", "delayed", "delivered", "relayed", "complained", "auto_reply", "challenged"}

// String returns the name of the outcome in logs and metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// A Report is the content of a mail or receipt about one recipient.
type Report struct {
	Outcome   Outcome
	Class     fanfare.Class // reason of Failed and Delayed; "": unknown
	Certain   bool          // for ClassInvalid: both status and words say that the mailbox does not exist
	Recipient string        // "" if unknown; the original recipient if the report contains it
	Status    string        // enhanced status code, such as 5.1.1 (RFC 3463); "" without one
	Code      int           // reply code of SMTP, 0 without one
	Text      string        // text of the server, one line of at most MaxText bytes
	Relay     string        // server that reports, or ""
	Feedback  string        // of a complaint: its Feedback-Type, such as abuse (RFC 5965, section 3.1)

	// From the original message, if the report contains it. Fanfare wrote them and can verify them.
	ReturnPath  string   // envelope sender
	Unsubscribe []string // the URIs of its List-Unsubscribe
}

// MaxText is the maximum length of the Text of a Report, in bytes.
const MaxText = 512

// Kind is how a report arrived. It does not depend on the content of the report.
type Kind uint8

// The kinds.
const (
	Bounce      Kind = iota // mail to the return address of a message
	Unsubscribe             // mail to the address in List-Unsubscribe
	Complaint               // mail to an address for complaints of providers
	Receipt                 // report of a provider over HTTP
)

var kindNames = [...]string{"bounce", "unsubscribe", "complaint", "receipt"}

// String returns the name of the kind in logs and metrics.
func (k Kind) String() string { return kindNames[k] }

// An Arrival is a mail or receipt about a message that was sent.
type Arrival struct {
	Kind     Kind
	Delivery fanfare.DeliveryRef // from the return address; zero: to be found in the report
	Shared   bool                // the message had several recipients; the report identifies the recipient
	From, To string              // of the envelope
	Raw      []byte              // header and body
	Reports  []Report            // parsed reports; nil: parse Raw
	Service  string              // the only service that it may be about; "": any
	Source   string              // origin, such as "smtp 192.0.2.1" or "webhook mailgun"
	At       time.Time
}
