package fanfare

import "time"

// A Wait is why a message that was not tried waits for a time. Numbers are kept in
// the store.
type Wait uint8

// The reasons. What waits for its next attempt after one that failed has none.
const (
	WaitNone                 Wait = iota
	WaitNotBefore                 // its event may not leave before
	WaitQuiet                     // it is quiet where the person is
	WaitBroadcastRate             // its broadcast has a rate, and many others wait for it
	WaitDestinationLimit          // its destination has less room than there is for it
	WaitDestinationSuspended      // its destination is left alone
)

var waitNames = [...]string{"", "not_before", "quiet_hours", "broadcast_rate", "destination_limit", "destination_suspended"}

// String is the name in answers; "" of none.
func (w Wait) String() string {
	if int(w) < len(waitNames) {
		return waitNames[w]
	}
	return "unknown"
}

// WaitDailyQuota is the name of a reason that is not kept with what waits: the
// quota of a day is spent.
const WaitDailyQuota = "daily_quota"

// Waiting is for what, and until when, messages wait that were not tried.
type Waiting struct {
	For         string    `json:"for"`   // name of a Wait, or WaitDailyQuota
	Until       time.Time `json:"until"` // when the first is looked at again
	Last        time.Time `json:"last,omitzero"`
	Messages    int64     `json:"messages,omitempty"`
	Destination string    `json:"destination,omitempty"`
}
