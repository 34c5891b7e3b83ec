package client

import (
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and responses that are shared with the server.
type (
	// A Subscription is a request for a subscription.
	Subscription = wire.SubscriptionRequest
	// TemplateParts holds the texts of a template.
	TemplateParts = wire.TemplateParts
	// A KeyRequest describes a new key.
	KeyRequest = wire.KeyRequest
	// A Key describes a key, without its secret.
	Key = wire.Key
	// A NewKey is a key with its secret, which the server shows only once.
	NewKey = wire.NewKey
	// A Diff is what an apply changed.
	Diff = wire.Diff
	// A Change is one member of a Diff.
	Change = wire.Change
	// Subscribed is the response to a subscription.
	Subscribed = wire.Subscribed
	// A PutSummary is the response to an import.
	PutSummary = wire.PutSummary
	// Accepted is the response to an event.
	Accepted = wire.Accepted
	// An EventSummary is the result of publishing lines of events.
	EventSummary = wire.EventSummary
	// A LineError is a line that was refused.
	LineError = wire.LineError
	// A Member describes why a line was refused.
	Member = wire.Member
	// A Move is a move of all data into another database.
	Move = wire.Move
	// A MoveTable is a table in both databases of a move.
	MoveTable = wire.MoveTable
	// Nodes are the nodes of a cluster.
	Nodes = wire.Nodes
	// A Node is a server that belongs to a cluster.
	Node = wire.Node
	// ClusterStatus summarizes the nodes of a cluster.
	ClusterStatus = wire.Cluster
	// BusCopies describe the NATS servers of a cluster.
	BusCopies = wire.Copies
	// Restored describes the backup from which a server was restored.
	Restored = wire.Restored
	// RestoredFrom is Restored without its list.
	RestoredFrom = wire.RestoredFrom
	// A CapturedPage is a page of captured messages.
	CapturedPage = wire.CapturedPage
	// A CapturedSummary is a captured message without its content.
	CapturedSummary = wire.CapturedMessage
	// CapturedContent is a captured message with its content.
	CapturedContent = wire.CapturedContent
	// Rates are values of the server over time.
	Rates = wire.Rates
	// A Rate has the values of a step of Rates.
	Rate = wire.Rate
	// LaneCounts are counts by lane.
	LaneCounts = wire.LaneCounts
	// Status is the status of the server.
	Status = wire.Status
	// A ChannelStatus is the status of a channel.
	ChannelStatus = wire.Channel
	// A ChannelProblem is a key, password or secret that a channel cannot use.
	ChannelProblem = wire.ChannelProblem
	// A Destination has problems, or messages wait for it.
	Destination = wire.Destination
	// Gathered is what waits for a digest.
	Gathered = wire.Gathered
	// A QuotaStatus is the used part of today's quota.
	QuotaStatus = wire.QuotaStatus
	// A RelayStatus is the status of a next hop of a channel.
	RelayStatus = wire.RelayStatus

	// MatchCheck describes the checks of the matching index.
	MatchCheck = wire.MatchCheck
	// TemplateFault is a position at which a template failed for recipients.
	TemplateFault = wire.TemplateFault

	// QuarantinedCondition is a condition for which the index returned a wrong result.
	QuarantinedCondition = wire.QuarantinedCondition
	// A MessageRequest is a request to send a message to named recipients.
	MessageRequest = wire.MessageRequest
	// A MessageFile is a file in one message.
	MessageFile = wire.MessageFile
	// A MessageContent is a template for one message.
	MessageContent = wire.MessageContent
	// A To is one recipient of a message.
	To = wire.To
	// A Message is a direct send with its outcomes.
	Message = wire.Message
	// A RecipientError describes why a recipient gets no message.
	RecipientError = wire.RecipientError
	// A MessagePage is a page of the messages with a reference.
	MessagePage = wire.MessagePage
	// A DeliveryPage is a page of the deliveries of an event.
	DeliveryPage = wire.DeliveryPage
)

// A SubscriptionRecord is a stored subscription.
type SubscriptionRecord struct {
	Subscription
	Subscriber string    `json:"subscriber"` // public id
	Service    string    `json:"service"`
	State      string    `json:"state"` // active, paused or ended
	CreatedAt  time.Time `json:"created_at"`
	PausedAt   time.Time `json:"paused_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why the subscription ended
}

// MaxFilesBytes is the maximum total size of the files of one message.
const MaxFilesBytes = wire.MaxFilesBytes
