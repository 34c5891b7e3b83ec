package fanfare

import "fmt"

// State is where a delivery is on its way. The numbers are stored.
type State uint8

// A delivery is Pending until its first attempt, Deferred between attempts, and
// settled in every other state. A settled delivery is never attempted again; a
// receipt or a bounce may still move Accepted to Delivered or Failed.
const (
	Pending    State = iota // in a manifest, nothing tried yet
	Deferred                // a try failed for now; the due table has the next
	Accepted                // the next hop took it
	Delivered               // a receipt says that it arrived
	Failed                  // refused for good, or attempts exhausted
	Expired                 // its time ran out before it could leave
	Cancelled               // an operator stopped it
	Suppressed              // the person did not want it any more when it was about to leave
)

var stateNames = [...]string{"pending", "deferred", "accepted", "delivered", "failed", "expired", "cancelled", "suppressed"}

// States is the number of states, for tables indexed by State.
const States = len(stateNames)

// String returns the state's name as API, logs and metrics spell it.
func (s State) String() string { return stateNames[s] }

// Settled reports whether the delivery is over.
func (s State) Settled() bool { return s >= Accepted }

// Lane keeps work of different urgency apart through every stage.
type Lane uint8

// The lanes, most urgent first.
const (
	Urgent Lane = iota
	Normal
	Bulk

	// TopicLane asks intake for the lane that the topic names.
	TopicLane Lane = 255
)

var laneNames = [...]string{"urgent", "normal", "bulk"}

// Lanes lists all lanes, most urgent first.
var Lanes = [...]Lane{Urgent, Normal, Bulk}

// String returns the lane's name.
func (l Lane) String() string { return laneNames[l] }

// ParseLane reads a lane's name; the empty name is Normal.
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
