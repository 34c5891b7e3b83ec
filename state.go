package fanfare

import "fmt"

// State is the state of a delivery. The numbers are stored.
type State uint8

// A delivery is Pending until its first attempt, Deferred between attempts, and settled in every
// other state. A settled delivery is never attempted again; a receipt or a bounce may still change
// Accepted to Delivered or Failed.
const (
	Pending    State = iota // in a manifest, not attempted yet
	Deferred                // an attempt failed temporarily; the next is in the due table
	Accepted                // the next hop accepted the message
	Delivered               // a receipt confirms that the message arrived
	Failed                  // refused permanently, or all attempts failed
	Expired                 // expired before it could be sent
	Cancelled               // cancelled by an operator
	Suppressed              // the recipient no longer wanted the message when it was about to be sent
)

var stateNames = [...]string{"pending", "deferred", "accepted", "delivered", "failed", "expired", "cancelled", "suppressed"}

// States is the number of states, for arrays indexed by State.
const States = len(stateNames)

// String returns the name of the state in the API, logs and metrics.
func (s State) String() string { return stateNames[s] }

// Settled reports whether the state is final.
func (s State) Settled() bool { return s >= Accepted }

// Lane separates work by urgency in every stage.
type Lane uint8

// The lanes, most urgent first.
const (
	Urgent Lane = iota
	Normal
	Bulk

	// TopicLane selects the lane of the topic at intake.
	TopicLane Lane = 255
)

var laneNames = [...]string{"urgent", "normal", "bulk"}

// Lanes lists all lanes, most urgent first.
var Lanes = [...]Lane{Urgent, Normal, Bulk}

// String returns the lane's name.
func (l Lane) String() string { return laneNames[l] }

// ParseLane parses the name of a lane. The empty name is Normal.
func ParseLane(s string) (Lane, error) {
	if s == "" {
		return Normal, nil
	}
	for i, name := range laneNames {
		if s == name {
			return Lane(i), nil
		}
	}
	return Normal, &Error{Code: Invalid, Message: fmt.Sprintf("unknown lane %q", s), Hint: "use urgent, normal or bulk"}
}
