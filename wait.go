package fanfare

import "time"

// Wait is the reason why a message without an attempt is postponed. The store keeps the
// numbers.
type Wait uint8

// The reasons. A message that waits for its next attempt after a failed one has none.
const (
	WaitNone                 Wait = iota
	WaitNotBefore                 // the not-before time of its event has not come
	WaitQuiet                     // the subscriber has quiet hours
	WaitBroadcastRate             // the rate of its broadcast is used up
	WaitDestinationLimit          // the limit of its destination is used up
	WaitDestinationSuspended      // its destination is suspended
)

var waitNames = [...]string{"", "not_before", "quiet_hours", "broadcast_rate", "destination_limit", "destination_suspended"}

// String returns the name in answers, "" for WaitNone.
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
