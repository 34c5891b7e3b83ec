package client

import (
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and answers that are shared with the server.
type (
	// A Subscription is what somebody wants to be told.
	Subscription = wire.SubscriptionRequest
	// TemplateParts is what a template says.
	TemplateParts = wire.TemplateParts
	// A KeyRequest says what a new key is for.
	KeyRequest = wire.KeyRequest
	// A Key is what is known of a key; its secret is not.
	Key = wire.Key
	// A NewKey is a key with its secret, which is shown this once.
	NewKey = wire.NewKey
	// A Diff is what an apply changed.
	Diff = wire.Diff
	// A Change is one member of a Diff.
	Change = wire.Change
	// Subscribed is the answer to a subscription.
	Subscribed = wire.Subscribed
	// A PutSummary is the answer to an import.
	PutSummary = wire.PutSummary
	// Accepted is the answer to an event.
	Accepted = wire.Accepted
	// An EventSummary is what came of events that were sent line by line.
	EventSummary = wire.EventSummary
	// A LineError is a line that was refused.
	LineError = wire.LineError
	// A Member says why it was refused.
	Member = wire.Member
	// A Move is a move of all that is kept into another database.
	Move = wire.Move
	// A MoveTable is a table in both databases of a move.
	MoveTable = wire.MoveTable
	// Restored says which backup a server was restored from.
	Restored = wire.Restored
	// RestoredFrom is what Restored says without its list.
	RestoredFrom = wire.RestoredFrom
	// Status is how the server is doing.
	Status = wire.Status
	// A ChannelStatus is how a channel is doing.
	ChannelStatus = wire.Channel
	// A ChannelProblem is a key, a password or a secret that a channel cannot use now.
	ChannelProblem = wire.ChannelProblem
	// A Destination is one that is not well, or for whom messages wait.
	Destination = wire.Destination
	// Gathered is what waits for a digest.
	Gathered = wire.Gathered
	// A QuotaStatus is how much of today's quota is used.
	QuotaStatus = wire.QuotaStatus
	// A RelayStatus is how one of its next hops is doing.
	RelayStatus = wire.RelayStatus

	// MatchCheck says how the answers of the matching index are checked.
	MatchCheck = wire.MatchCheck
	// TemplateFault says where a template failed for recipients.
	TemplateFault = wire.TemplateFault

	// QuarantinedCondition is a condition about which the index was wrong.
	QuarantinedCondition = wire.QuarantinedCondition
	// A MessageRequest asks for a message to people who are named.
	MessageRequest = wire.MessageRequest
	// A MessageFile is a file that goes with one message.
	MessageFile = wire.MessageFile
	// A MessageContent is a template for one message.
	MessageContent = wire.MessageContent
	// A To is one recipient of a list.
	To = wire.To
	// A Message is a direct send, and what became of it.
	Message = wire.Message
	// A RecipientError says why one of a list gets nothing.
	RecipientError = wire.RecipientError
	// A MessagePage is a part of the messages with a reference.
	MessagePage = wire.MessagePage
	// A DeliveryPage is a part of the deliveries of an event.
	DeliveryPage = wire.DeliveryPage
)

// A SubscriptionRecord is a subscription as the server has it.
type SubscriptionRecord struct {
	Subscription
	Subscriber string    `json:"subscriber"` // public id
	Service    string    `json:"service"`
	State      string    `json:"state"` // active, paused or ended
	CreatedAt  time.Time `json:"created_at"`
	PausedAt   time.Time `json:"paused_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why it ended
}

// MaxFilesBytes is how large the files of one message may be together.
const MaxFilesBytes = wire.MaxFilesBytes
