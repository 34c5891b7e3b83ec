package fanfare

import "time"

// Wait is the reason why a message without an attempt is postponed. The numbers are stored.
type Wait uint8

// The reasons. A message that waits for its next attempt after a failed one has no reason.
const (
	WaitNone                 Wait = iota
	WaitNotBefore                 // the not-before time of its event has not been reached
	WaitQuiet                     // the subscriber has quiet hours
	WaitBroadcastRate             // its broadcast has reached its rate
	WaitDestinationLimit          // its destination has reached its limit
	WaitDestinationSuspended      // its destination is suspended
)

var waitNames = [...]string{"", "not_before", "quiet_hours", "broadcast_rate", "destination_limit", "destination_suspended"}

// String returns the name in API answers, "" for WaitNone.
func (w Wait) String() string {
	if int(w) < len(waitNames) {
		return waitNames[w]
	}
	return "unknown"
}

// WaitDailyQuota is the name of a reason that is not stored with the message: the daily quota is
// used up.
const WaitDailyQuota = "daily_quota"

// Waiting says why, and until when, messages without an attempt wait.
type Waiting struct {
	For         string    `json:"for"`   // name of a Wait, or WaitDailyQuota
	Until       time.Time `json:"until"` // when the first of them is checked again
	Last        time.Time `json:"last,omitzero"`
	Messages    int64     `json:"messages,omitempty"`
	Destination string    `json:"destination,omitempty"`
}
