package people

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// A Consent is a proof that a person requested a subscription: what they agreed to,
// where and when. It never changes, and is deleted with the person.
type Consent struct {
	Subscription string    `json:"subscription" doc:"id of the subscription"`
	Address      string    `json:"address" doc:"address of the subscription"`
	How          string    `json:"how" enum:"confirmed,vouched" doc:"confirmed: with the link in an email to the address; vouched: reported by the client that created the subscription"`
	Topic        string    `json:"topic" doc:"topic of the subscription"`
	Terms        string    `json:"terms,omitempty" doc:"version or URL of the terms that the person agreed to"`
	Source       string    `json:"source,omitempty" doc:"where the consent was given"`
	AskedAt      time.Time `json:"asked_at" doc:"when the subscription was requested"`
	At           time.Time `json:"at" doc:"when the consent was confirmed or, if vouched, stored"`

	Place fanfare.RowID `json:"-"` // row id of the subscription
}

// A ConsentRequest is a consent that a client reports.
type ConsentRequest struct {
	Terms  string    `json:"terms"`
	Source string    `json:"source"`
	At     time.Time `json:"at,omitzero"`
}

// The ways of giving consent.
const (
	ConsentConfirmed = "confirmed"
	ConsentVouched   = "vouched"
)

// MaxConsentBytes limits each text of a consent.
const MaxConsentBytes = 512

// ConfirmedConsent returns the consent of a put that was requested at a time and confirmed with a link.
func ConfirmedConsent(terms, source string, asked time.Time) json.RawMessage {
	b, _ := json.Marshal(ConsentRequest{Terms: terms, Source: source, At: asked.UTC()}) // plain fields: cannot fail
	return append(json.RawMessage(ConfirmedMark), b...)
}

// ConfirmedMark begins a consent that clients cannot send, because theirs begin with a brace.
const ConfirmedMark = "!"
