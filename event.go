package fanfare

import (
	"encoding/json"
	"time"
)

// An Event is one occurrence, in the terms of CloudEvents 1.0.
type Event struct {
	ID      string          `json:"id"`     // unique for its source; Fanfare makes one if the sender gives none
	Source  string          `json:"source"` // URI-reference of the sender
	Type    string          `json:"type"`   // defaults to the name of the topic
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data,omitempty"` // a JSON value that matches the schema of the topic; text that is not JSON becomes a JSON string

	ContentType string                     `json:"datacontenttype,omitempty"` // of the data as the sender sent it; "" is application/json
	DataSchema  string                     `json:"dataschema,omitempty"`      // URI of the sender's own schema; stored, not used
	Binary      []byte                     `json:"data_base64,omitempty"`     // data that is neither JSON nor text; conditions cannot use it
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`      // attributes that the specification does not define: strings, numbers, Booleans
}

// An AcceptedEvent is an event that the server has validated, with the fields that Fanfare
// adds to it.
type AcceptedEvent struct {
	Service    string    `json:"service"`
	Topic      string    `json:"topic"` // "" for a direct send or a run
	Lane       Lane      `json:"lane"`
	ChangeSeq  uint64    `json:"change_seq"` // the last change of a subscription that must be visible when the event is matched
	ReceivedAt time.Time `json:"received_at"`
	Event      Event     `json:"event"`
	Direct     *Direct   `json:"direct,omitempty"` // recipients of a direct send; nil if the event is matched
	Run        *Run      `json:"run,omitempty"`    // of a digest, whose recipients were collected before

	// Content is what the messages say, in place of a template of the topic; nil for the template.
	Content *EventContent `json:"content,omitempty"`

	// Audience limits the recipients; nil if it does not.
	Audience *AudienceFilter `json:"audience,omitempty"`

	NotBefore time.Time `json:"not_before,omitzero"` // no message is sent before this time
	Expires   time.Time `json:"expires,omitzero"`    // no message is sent after this time, even if the topic and the channel allow more

	// Was is the sequence that the event had before it was parked and tried again. The event keeps
	// that sequence, so that both tries belong to one broadcast.
	Was EventSeq `json:"was,omitempty"`

	// Filter is the worker that is asked about the recipients before anything is sent to them, if the
	// topic had one when the event was matched.
	Filter string `json:"filter,omitempty"`

	// After is the id of the previous event with the same key, if the topic has a key; crossings
	// compare the event with it. It is set when the event is matched; "" if there is none.
	After string `json:"after,omitempty"`

	Seq EventSeq `json:"-"` // set when the event is stored
}

// EventContent is content that comes with an event, for all of its messages.
type EventContent struct {
	Content
	Channel uint16            `json:"channel,omitempty"` // only subscriptions of the channel with this number get the event; 0: of any
	From    string            `json:"from,omitempty"`    // in place of the From of the channel
	AsIs    bool              `json:"as_is,omitempty"`   // no text is generated from the HTML, whose styles stay where they are
	ListID  string            `json:"list_id,omitempty"` // in place of the List-Id of the channel
	Leaving *SubscriptionLink `json:"leaving,omitempty"` // the unsubscribe link, in place of the signed one
}

// A SubscriptionLink is a link with the id of a subscription and a code from its data.
type SubscriptionLink struct {
	Before string `json:"before"` // the link up to the id
	After  string `json:"after"`  // follows the id
	Query  string `json:"query"`  // stands before the code
	Code   string `json:"code"`   // name of the member of the data with the code; without it, the link ends before Query
}

// An AudienceFilter is a condition of the sender that limits the recipients of an event.
type AudienceFilter struct {
	Filter  string `json:"filter"`            // CEL over subscriber and sub
	Outside int64  `json:"outside,omitempty"` // number of subscriptions that match the event but not the filter; set when the event is matched
}

// Ref returns the name of the event.
func (p *AcceptedEvent) Ref() EventRef { return EventRef{DayOf(p.ReceivedAt), p.Seq} }
