package wire

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// Limits of a direct send.
const (
	// MaxRecipients is how many people one message may name.
	MaxRecipients = 10_000
	// MaxMessageBytes is how large its body may be.
	MaxMessageBytes = 4 << 20
	// MaxMessageFiles is how many files may go with it, and MaxFilesBytes how large
	// they may be together, before they are written as base64.
	MaxMessageFiles = 20
	MaxFilesBytes   = 2 << 20
	// MaxReferenceBytes is how long a reference may be.
	MaxReferenceBytes = 200
	// MaxKeyBytes is how long an Idempotency-Key may be.
	MaxKeyBytes = 255
	// MaxWaitSeconds is how long an answer may be waited for.
	MaxWaitSeconds = 30
)

// A MessageRequest asks for a message to people who are named: one by to or
// subscriber, many by recipients.
type MessageRequest struct {
	Channel      string          `json:"channel" doc:"name of the channel that sends it" example:"email"`
	To           string          `json:"to,omitempty" doc:"address of the one recipient; a subscriber with it is created if there is none" example:"ada@example.com"`
	Subscriber   string          `json:"subscriber,omitempty" doc:"id of the one recipient, instead of an address"`
	Recipients   []To            `json:"recipients,omitempty" maxItems:"10000" doc:"instead of to and subscriber: a list"`
	Template     string          `json:"template,omitempty" doc:"name of a template, whose current version is taken, or name@version" example:"receipt@3"`
	Content      *MessageContent `json:"content,omitempty" doc:"instead of a template"`
	Data         json.RawMessage `json:"data,omitempty" doc:"object: the value of event in templates"`
	Reference    string          `json:"reference,omitempty" maxLength:"200" doc:"your own text, by which the message can be found" example:"order-4711"`
	NotBefore    time.Time       `json:"not_before,omitzero" doc:"nothing is sent before this time"`
	Expires      time.Time       `json:"expires,omitzero" doc:"nothing is sent after this time"`
	Lane         string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"default: urgent for one recipient, bulk for a list"`
	Attachments  []MessageFile   `json:"attachments,omitempty" maxItems:"20" doc:"files that go with it, the same to all recipients; 2 MiB together"`
	AllOrNothing bool            `json:"all_or_nothing,omitempty" doc:"of a list: one wrong recipient refuses the whole message; else it is left out and named in the answer"`
}

// A To is one recipient of a list.
type To struct {
	To         string          `json:"to,omitempty" doc:"address"`
	Subscriber string          `json:"subscriber,omitempty" doc:"id, instead of an address"`
	Data       json.RawMessage `json:"data,omitempty" doc:"object: what templates see as sub, in this recipient's message alone"`
}

// MessageContent is a template for one message: Liquid, of which the HTML is
// escaped.
type MessageContent struct {
	Subject string `json:"subject" example:"Order {{ event.order }}"`
	Text    string `json:"text,omitempty" doc:"text or html, or both" example:"Thank you, {{ sub.name | default: 'friend' }}."`
	HTML    string `json:"html,omitempty" doc:"values are escaped"`
}

// A Message is a direct send, and what became of it.
type Message struct {
	ID         string            `json:"id" doc:"public id (msg-...)"`
	Event      string            `json:"event" doc:"the same as an event (evt-...), for traces, pause and cancel"`
	Service    string            `json:"service"`
	State      string            `json:"state" doc:"of one recipient's: pending, deferred, accepted, delivered, failed, expired, cancelled or suppressed; of a list: queued, running, paused, cancelled or completed"`
	Reason     string            `json:"reason,omitempty" doc:"why it is paused or cancelled"`
	Reference  string            `json:"reference,omitempty"`
	Lane       string            `json:"lane"`
	Channel    string            `json:"channel"`
	Template   string            `json:"template,omitempty" doc:"name@version; absent where it has content of its own"`
	Recipients int               `json:"recipients" doc:"number of recipients"`
	Errors     []RecipientError  `json:"errors,omitempty" doc:"of the answer to a list: who was left out, and why"`
	Counts     fanfare.Counts    `json:"counts" doc:"deliveries by state"`
	Delivery   *fanfare.Delivery `json:"delivery,omitempty" doc:"of a message to one: its delivery with every attempt; absent until it was looked for with GET or wait"`
	Stages     fanfare.Stages    `json:"stages"`
	Deliveries string            `json:"deliveries" doc:"path of the list of its deliveries"`

	Attachments []Attachment `json:"attachments,omitempty" doc:"the files that go with it, beside those of its template"`
}

// A RecipientError is a member of a list that gets nothing.
type RecipientError struct {
	Index int    `json:"index" doc:"in recipients, from 0"`
	Error Member `json:"error"`
}

// MessagePage is a part of the messages with a reference, the latest first.
type MessagePage struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// Settled reports whether nothing more will happen to the message by itself.
func (m *Message) Settled() bool { return !m.Stages.Completed.IsZero() }

// A MessageRun says what a message would set off, were it sent now.
type MessageRun struct {
	DryRunChannel
	Hold   string           `json:"hold,omitempty" doc:"why it would wait for approval"`
	Errors []RecipientError `json:"errors,omitempty" doc:"recipients of a list to whom nothing would be sent, such as those that are suppressed"`
}
