package fanfare

import (
	"encoding/json"
	"time"
)

// An Event is one thing that happened, in the words of CloudEvents 1.0.
type Event struct {
	ID      string          `json:"id"`     // unique for its source; made by Fanfare where the sender has none
	Source  string          `json:"source"` // URI-reference of the sender
	Type    string          `json:"type"`   // defaults to the topic's name
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data,omitempty"` // a JSON value that the topic's schema accepts; text that is not JSON is a JSON string

	ContentType string                     `json:"datacontenttype,omitempty"` // of the data as it was sent; "" is application/json
	DataSchema  string                     `json:"dataschema,omitempty"`      // URI of the sender's own schema; kept, not read
	Binary      []byte                     `json:"data_base64,omitempty"`     // data that is neither JSON nor text: no condition sees it
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`      // attributes that the specification does not name: strings, numbers, Booleans
}

// An AcceptedEvent is an event that the server has validated, with the fields that Fanfare
// adds to it.
type AcceptedEvent struct {
	Service    string    `json:"service"`
	Topic      string    `json:"topic"` // "" of a direct send, and of a run
	Lane       Lane      `json:"lane"`
	ChangeSeq  uint64    `json:"change_seq"` // the last change of a subscription that this event must see
	ReceivedAt time.Time `json:"received_at"`
	Event      Event     `json:"event"`
	Direct     *Direct   `json:"direct,omitempty"` // nil: who gets it is matched
	Run        *Run      `json:"run,omitempty"`    // of a digest: who gets it was gathered

	// Audience narrows who gets it; nil: everybody who wants it.
	Audience *AudienceFilter `json:"audience,omitempty"`

	NotBefore time.Time `json:"not_before,omitzero"` // nothing leaves before
	Expires   time.Time `json:"expires,omitzero"`    // nothing leaves after, whatever topic and channel say

	// Was is the sequence of an event that was parked and is tried again: it keeps
	// it, so that two tries are one broadcast.
	Was EventSeq `json:"was,omitempty"`

	// After is the id of the last event of the same key, in a topic that has a key:
	// what crossings compared it with. Known once it is matched; "" for none.
	After string `json:"after,omitempty"`

	Seq EventSeq `json:"-"` // known once it is kept
}

// An AudienceFilter is a sender's condition over the people whom an event would
// reach.
type AudienceFilter struct {
	Filter  string `json:"filter"`            // CEL over subscriber and sub
	Outside int64  `json:"outside,omitempty"` // subscriptions that want the event and are not in the audience; known once it is matched
}

// Ref returns the name of the event.
func (p *AcceptedEvent) Ref() EventRef { return EventRef{DayOf(p.ReceivedAt), p.Seq} }
