package suppression

import (
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// RefusedError returns the error for a suppressed address.
func RefusedError(key Key, s State, at string) error {
	e := &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Message: "the address is on the suppression list: " + s.Reason}
	lift := "fanfare suppression lift, or DELETE /v1/suppressions?address="
	switch {
	case key.Service == AllServices:
		e.Message += ", for all services"
		e.Hint = "an operator of the server can lift the suppression with fanfare suppression lift --all-services, or DELETE /v1/suppressions?address=…&all_services=true"
	case s.Reason == ReasonHardBounce, s.Reason == ReasonSoftBounces:
		e.Hint = "messages to it bounced; once the mailbox works again, lift the suppression with " + lift
	default:
		e.Hint = "if its owner asks for messages again, lift the suppression with " + lift
	}
	return e
}

// Reasons of suppressions, the weakest first. A stronger reason replaces a weaker one, but not
// vice versa.
const (
	ReasonSoftBounces  = "soft_bounces" // too many temporary failures
	ReasonImported     = "imported"     // imported from another system
	ReasonUnsubscribed = "unsubscribed" // the owner unsubscribed from everything
	ReasonHardBounce   = "hard_bounce"  // the mailbox does not exist
	ReasonManual       = "manual"       // added by an operator
	ReasonComplaint    = "complaint"    // the owner reported a message as spam
	ReasonErased       = "erased"       // the owner was erased and wants no more messages
)

// Reasons lists the reasons, the weakest first.
var Reasons = []string{ReasonSoftBounces, ReasonImported, ReasonUnsubscribed, ReasonHardBounce, ReasonManual, ReasonComplaint, ReasonErased}

// AllServices is the service number of suppressions for all services.
const AllServices = 0

// MaxSourceBytes is the maximum length of the source of a suppression.
const MaxSourceBytes = 200

// A Request asks to suppress an address.
type Request struct {
	Service string    // "": all services
	Address string    // in any spelling
	Hash    string    // in place of Address: the hash that this server exported
	Reason  string    // one of Reasons; for ReasonErased only the hash is stored
	Source  string    // such as "smtp 192.0.2.1", a file or a key
	Until   time.Time // zero, or after 2262: permanent
}

// LastNano is the latest time, in 2262, in Unix nanoseconds. A later time, such as 9999-12-31,
// means no end.
var LastNano = time.Unix(0, math.MaxInt64)

// Outlasts reports whether end a is later than end b; 0 is no end.
func Outlasts(a, b int64) bool { return b != 0 && (a == 0 || a > b) }

func Strength(reason string) int { return slices.Index(Reasons, reason) }
