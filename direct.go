package fanfare

import (
	"cmp"
	"encoding/json"
	"slices"
)

// A Direct event names its audience; the other events are matched with subscriptions. It has no
// topic. It stores recipients by row id, without addresses, so that erasing a person also removes
// the person's addresses here.
type Direct struct {
	Channel   uint16   `json:"channel"`             // number of the channel
	Template  uint32   `json:"template,omitempty"`  // number of the template version; 0: Content
	Content   *Content `json:"content,omitempty"`   // instead of a named template
	Reference string   `json:"reference,omitempty"` // chosen by the client
	Send      string   `json:"send,omitempty"`      // id of the send of which this is a part
	Digest    string   `json:"digest,omitempty"`    // of the request, if it had an Idempotency-Key
	List      bool     `json:"list,omitempty"`      // sent to a list, possibly of one member
	Asked     bool     `json:"asked,omitempty"`     // the recipient has just requested it: send it even if the recipient unsubscribed from everything

	// Submitted is set if the owner of a mailbox wrote the message. It is sent as it is: its bytes are the only file.
	Submitted *Submitted `json:"submitted,omitempty"`

	ReplyTo     string `json:"reply_to,omitempty"`    // header Reply-To, instead of that of the channel
	Unsubscribe string `json:"unsubscribe,omitempty"` // https URL for List-Unsubscribe, which one POST request ends (RFC 8058)

	Notify *NotifyOrigin `json:"notify,omitempty"` // set if a client of GOV.UK Notify sent the message

	Files []File `json:"files,omitempty"` // attached or shown in HTML, in addition to the files of a named template

	Recipients []Recipient `json:"recipients"` // ascending by subscriber, without duplicates, never empty
}

// A NotifyOrigin is what the API for clients of GOV.UK Notify must know of a message later.
type NotifyOrigin struct {
	Key    string `json:"key"`              // type of the key: live, team or test
	SMS    bool   `json:"sms,omitempty"`    // a text message
	Sender string `json:"sender,omitempty"` // of a text message

	// Spelling is how the request spelled a phone number: # stands for each digit that ends the number in
	// its normal form, such as 0#### ### ###, so that it does not contain the number.
	Spelling string `json:"spelling,omitempty"`
	Prefix   string `json:"prefix,omitempty"` // precedes the text of a text message
}

// Submitted says who wrote a message.
type Submitted struct {
	Sender RowID `json:"sender"` // the subscriber to whom the mailbox belongs
}

// Content is a template that only one event uses.
type Content struct {
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	JSON    string `json:"json,omitempty"`
}

// A Recipient is a member of an audience.
type Recipient struct {
	Subscriber RowID           `json:"p"`
	Data       json.RawMessage `json:"d,omitempty"` // a JSON object that only the message of this recipient can use
}

// To returns the recipient that is the subscriber, or nil if the audience does not include it.
func (d *Direct) To(subscriber RowID) *Recipient {
	at, found := slices.BinarySearchFunc(d.Recipients, subscriber, func(r Recipient, p RowID) int { return cmp.Compare(r.Subscriber, p) })
	if !found {
		return nil
	}
	return &d.Recipients[at]
}
