package suppression

import (
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// RefusedError says why an address cannot be subscribed, and what can be done about it.
func RefusedError(key Key, s State, at string) error {
	e := &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Message: "the address is on the suppression list: " + s.Reason}
	lift := "fanfare suppression lift, or DELETE /v1/suppressions?address="
	switch {
	case key.Service == AllServices:
		e.Message += ", for all services"
		e.Hint = "an operator of the server can lift that with fanfare suppression lift --all-services, or DELETE /v1/suppressions?address=…&all_services=true"
	case s.Reason == ReasonHardBounce, s.Reason == ReasonSoftBounces:
		e.Hint = "messages to it came back; once the mailbox works again, lift that with " + lift
	default:
		e.Hint = "if its owner asks for messages again, lift that with " + lift
	}
	return e
}

// Why an address is suppressed, the weakest reason first: a stronger one takes the
// place of a weaker one, and never the other way round.
const (
	ReasonSoftBounces  = "soft_bounces" // too many messages were refused for now
	ReasonImported     = "imported"     // it was on the list of another system
	ReasonUnsubscribed = "unsubscribed" // its owner wants nothing at all
	ReasonHardBounce   = "hard_bounce"  // there is no such mailbox
	ReasonManual       = "manual"       // an operator asked for it
	ReasonComplaint    = "complaint"    // its owner called a message spam
	ReasonErased       = "erased"       // its owner was forgotten, and wants to be left alone
)

// Reasons lists them, the weakest first.
var Reasons = []string{ReasonSoftBounces, ReasonImported, ReasonUnsubscribed, ReasonHardBounce, ReasonManual, ReasonComplaint, ReasonErased}

// AllServices is the number in the place of a service of what holds for all of them.
const AllServices = 0

// MaxSourceBytes is how long the source of a suppression may be.
const MaxSourceBytes = 200

// A Request asks that nobody writes to an address any more.
type Request struct {
	Service string    // "": all services
	Address string    // as it is written
	Hash    string    // instead of it: what an export of this server has of one that was erased
	Reason  string    // one of SuppressionReasons; of Erased, nothing but a hash is kept
	Source  string    // who says so: "smtp 192.0.2.1", a file, a key
	Until   time.Time // zero, or after 2262: for good
}

// LastNano is the latest time, in 2262, that Unix nanoseconds tell. Who writes a later
// one, such as 9999-12-31, means for good.
var LastNano = time.Unix(0, math.MaxInt64)

// Outlasts compares ends, of which 0 is none.
func Outlasts(a, b int64) bool { return b != 0 && (a == 0 || a > b) }

func Strength(reason string) int { return slices.Index(Reasons, reason) }
