package condition

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Quarantined is a condition for which the index returned a wrong result, and which the
// evaluator now decides: a filter, or the rule and the params of one subscription. The registry
// stores it as
// JSON.
type Quarantined struct {
	Topic        uint32        `json:"topic"`
	Filter       string        `json:"-"`                      // for all subscriptions that have it
	Subscription fanfare.RowID `json:"subscription,omitempty"` // a subscription to a rule
	Hash         uint64        `json:"hash,omitempty"`         // of the rule and its params: another one means that the condition has changed

	Since     time.Time `json:"since"`
	Event     string    `json:"event"`     // at which the contradiction was found
	Index     string    `json:"index"`     // the answer of the index: true, or not true
	Evaluator string    `json:"evaluator"` // the answer of the evaluator: true, false or error
}
