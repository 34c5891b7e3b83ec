package bounce

import (
	"time"

	"fanfare.dev/fanfare"
)

// Kind is the address or interface at which a message came back. Its content may still be of
// another kind.
type Kind uint8

// The kinds.
const (
	Bounce      Kind = iota // to the return address of a message
	Unsubscribe             // to the address in List-Unsubscribe
	Complaint               // to an address at which providers report complaints
	Receipt                 // a provider's word on a delivery, over HTTP
)

var kindNames = [...]string{"bounce", "unsubscribe", "complaint", "receipt"}

// String returns the kind's name as logs and metrics spell it.
func (k Kind) String() string { return kindNames[k] }

// An Arrival is something that came back, as it came in.
type Arrival struct {
	Kind     Kind
	Delivery fanfare.DeliveryRef // which message it is about, from the return address; zero: not known, it is sought in the report
	Shared   bool                // the message went to several recipients; the report says whom it is about
	From, To string              // the envelope
	Raw      []byte              // the message, header and body
	Reports  []Report            // what it says, where somebody has read it: a provider's document has a form of its own, and a mail may come to many addresses. nil: Raw is read
	Service  string              // whose messages alone it may be about; "": any
	Source   string              // who brought it: "smtp 192.0.2.1" or "webhook mailgun"
	At       time.Time
}
