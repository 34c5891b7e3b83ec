package fanfare

import (
	"cmp"
	"encoding/json"
	"slices"
)

// A Direct event has an audience: people who are named, instead of those whose
// subscriptions match. It has no topic. Recipients are places and not
// addresses, so that what is forgotten of a person is forgotten here too.
type Direct struct {
	Channel   uint16   `json:"channel"`             // number of the channel
	Template  uint32   `json:"template,omitempty"`  // number of the template version; 0: Content
	Content   *Content `json:"content,omitempty"`   // instead of a named template
	Reference string   `json:"reference,omitempty"` // the client's own text
	Digest    string   `json:"digest,omitempty"`    // of the request, where it came with an Idempotency-Key
	List      bool     `json:"list,omitempty"`      // it was sent to a list, even if that had one member
	Asked     bool     `json:"asked,omitempty"`     // its recipient just asked for it: that they once wanted nothing at all does not hold it back

	Files []File `json:"files,omitempty"` // that go with the message, beside those of a named template

	Recipients []Recipient `json:"recipients"` // ascending by subscriber, each once, never empty
}

// Content is a template that belongs to one event.
type Content struct {
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
}

// A Recipient is a member of an audience.
type Recipient struct {
	Subscriber RowID           `json:"p"`
	Data       json.RawMessage `json:"d,omitempty"` // a JSON object: what only this recipient's message sees
}

// To returns the member of the audience at a place, nil if it has none.
func (d *Direct) To(subscriber RowID) *Recipient {
	at, found := slices.BinarySearchFunc(d.Recipients, subscriber, func(r Recipient, p RowID) int { return cmp.Compare(r.Subscriber, p) })
	if !found {
		return nil
	}
	return &d.Recipients[at]
}
