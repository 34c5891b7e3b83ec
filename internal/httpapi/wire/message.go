package wire

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// Limits of a direct message.
const (
	// MaxRecipients is the maximum number of recipients of one message.
	MaxRecipients = 10_000
	// MaxMessageBytes is the maximum size of the request body.
	MaxMessageBytes = 4 << 20
	// MaxMessageFiles is the maximum number of attachments, and MaxFilesBytes their maximum
	// total size before base64.
	MaxMessageFiles = 20
	MaxFilesBytes   = 2 << 20
	// MaxReferenceBytes is the maximum length of a reference.
	MaxReferenceBytes = 200
	// MaxKeyBytes is the maximum length of an Idempotency-Key.
	MaxKeyBytes = 255
	// MaxWaitSeconds is the maximum time that a request can wait for a result.
	MaxWaitSeconds = 30
)

// A MessageRequest is a message to named recipients: one in to or subscriber, or many in
// recipients.
type MessageRequest struct {
	Channel      string          `json:"channel" doc:"name of the channel" example:"email"`
	To           string          `json:"to,omitempty" doc:"address of the recipient; if no subscriber has it, one is created" example:"ada@example.com"`
	Subscriber   string          `json:"subscriber,omitempty" doc:"id of the recipient, instead of an address"`
	Recipients   []To            `json:"recipients,omitempty" maxItems:"10000" doc:"list of recipients, instead of to and subscriber"`
	Template     string          `json:"template,omitempty" doc:"name of a template, for its current version, or name@version" example:"receipt@3"`
	Content      *MessageContent `json:"content,omitempty" doc:"content of the message, instead of a template"`
	Data         json.RawMessage `json:"data,omitempty" doc:"object: the value of event in templates"`
	Reference    string          `json:"reference,omitempty" maxLength:"200" doc:"your own reference, by which you can find the message" example:"order-4711"`
	NotBefore    time.Time       `json:"not_before,omitzero" doc:"nothing is sent before this time"`
	Expires      time.Time       `json:"expires,omitzero" doc:"nothing is sent after this time"`
	ReplyTo      string          `json:"reply_to,omitempty" maxLength:"320" doc:"mail: address for replies, with or without a name; default: that of the channel" example:"Support <support@example.org>"`
	Unsubscribe  string          `json:"unsubscribe_url,omitempty" maxLength:"2048" doc:"mail: https URL that ends the subscription with one POST request (RFC 8058); it becomes List-Unsubscribe and List-Unsubscribe-Post" example:"https://example.org/unsubscribe?token=8a1f"`
	Lane         string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"default: urgent for one recipient, bulk for a list"`
	Attachments  []MessageFile   `json:"attachments,omitempty" maxItems:"20" doc:"attachments, the same for all recipients; at most 2 MiB in total"`
	AllOrNothing bool            `json:"all_or_nothing,omitempty" doc:"for a list: one invalid recipient rejects the whole message; default: invalid recipients are skipped and reported in the response"`
}

// A To is one recipient of a list.
type To struct {
	To         string          `json:"to,omitempty" doc:"address"`
	Subscriber string          `json:"subscriber,omitempty" doc:"id of a subscriber, instead of an address"`
	Data       json.RawMessage `json:"data,omitempty" doc:"object: the value of sub in templates, only for this recipient"`
}

// MessageContent is a template for one message, in Liquid. Values in HTML are
// escaped.
type MessageContent struct {
	Subject string `json:"subject,omitempty" doc:"required, except for a text message and for json, which have none" example:"Order {{ event.order }}"`
	Text    string `json:"text,omitempty" doc:"plain text; text, html, both or json are required; a text message has only text" example:"Thank you, {{ sub.name | default: 'friend' }}."`
	HTML    string `json:"html,omitempty" doc:"values are escaped"`
	JSON    string `json:"json,omitempty" doc:"document for a webhook channel, instead of the other parts" example:"{\"order\": {{ event.order | json }}}"`
}

// A Message is a direct message and its state.
type Message struct {
	ID         string            `json:"id" doc:"public id (msg-...)"`
	Event      string            `json:"event" doc:"id of the event (evt-...), for traces, pause and cancel"`
	Service    string            `json:"service"`
	State      string            `json:"state" doc:"for one recipient: pending, deferred, accepted, delivered, failed, expired, cancelled or suppressed; for a list: queued, running, paused, cancelled or completed"`
	Reason     string            `json:"reason,omitempty" doc:"reason for the pause or the cancellation"`
	Reference  string            `json:"reference,omitempty"`
	Lane       string            `json:"lane"`
	Channel    string            `json:"channel"`
	Template   string            `json:"template,omitempty" doc:"name@version; absent if the message has its own content"`
	Recipients int               `json:"recipients" doc:"number of recipients"`
	Errors     []RecipientError  `json:"errors,omitempty" doc:"in the response to a list: skipped recipients, with the reasons"`
	Counts     fanfare.Counts    `json:"counts" doc:"number of deliveries by state"`
	Delivery   *fanfare.Delivery `json:"delivery,omitempty" doc:"for one recipient: the delivery with all attempts; only in responses to GET, or to a request with wait"`
	Stages     fanfare.Stages    `json:"stages"`
	Deliveries string            `json:"deliveries" doc:"path of the list of deliveries"`

	Attachments []Attachment `json:"attachments,omitempty" doc:"attachments, in addition to those of the template"`
}

// A RecipientError is a recipient of a list that gets no message, and the reason.
type RecipientError struct {
	Index int    `json:"index" doc:"position in recipients, from 0"`
	Error Member `json:"error"`
}

// MessagePage is a page of the messages with a reference, the latest first.
type MessagePage struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// Settled reports whether all deliveries of the message are settled.
func (m *Message) Settled() bool { return !m.Stages.Completed.IsZero() }

// A MessageRun is the result of the dry run of a message.
type MessageRun struct {
	DryRunChannel
	Hold   string           `json:"hold,omitempty" doc:"why the message would wait for approval"`
	Errors []RecipientError `json:"errors,omitempty" doc:"recipients of a list to whom nothing would be sent, such as suppressed recipients"`
}
