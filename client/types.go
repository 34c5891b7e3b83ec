package client

import (
	"time"

	"fanfare.dev/fanfare/internal/api/wire"
)

// What the server is asked and what it answers.
type (
	Subscription = wire.SubscriptionRequest
	Diff         = wire.Diff         // what an apply changed
	Change       = wire.Change       // one member of it
	Subscribed   = wire.Subscribed   // the answer to a subscription
	PutSummary   = wire.PutSummary   // the answer to an import
	Accepted     = wire.Accepted     // the answer to an event
	EventSummary = wire.EventSummary // what came of events that were sent line by line
	LineError    = wire.LineError    // a line that was refused
	Member       = wire.Member       // why
	Status       = wire.Status       // how the server is doing
	DeliveryPage = wire.DeliveryPage // a part of the deliveries of an event
)

// A SubscriptionRecord is a subscription as the server has it.
type SubscriptionRecord struct {
	Subscription
	Subscriber string    `json:"subscriber"` // public id
	Service    string    `json:"service"`
	State      string    `json:"state"` // active or ended
	CreatedAt  time.Time `json:"created_at"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why it ended
}
