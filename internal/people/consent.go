package people

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// A Consent is a proof that somebody asked for a subscription: to what they agreed,
// where and when. It is written once, and goes with the person.
type Consent struct {
	Subscription string    `json:"subscription" doc:"id of the subscription"`
	Address      string    `json:"address" doc:"to which messages go"`
	How          string    `json:"how" enum:"confirmed,vouched" doc:"confirmed: by the link that was mailed to the address; vouched: the program that subscribed it says so"`
	Topic        string    `json:"topic" doc:"what they are told of"`
	Terms        string    `json:"terms,omitempty" doc:"version or URL of what they agreed to"`
	Source       string    `json:"source,omitempty" doc:"where they did"`
	AskedAt      time.Time `json:"asked_at" doc:"when they asked"`
	At           time.Time `json:"at" doc:"when it was confirmed, or kept"`

	Place fanfare.RowID `json:"-"` // of the subscription
}

// A ConsentRequest is what a program says that somebody agreed to.
type ConsentRequest struct {
	Terms  string    `json:"terms"`
	Source string    `json:"source"`
	At     time.Time `json:"at,omitzero"`
}

// The ways to agree.
const (
	ConsentConfirmed = "confirmed"
	ConsentVouched   = "vouched"
)

// MaxConsentBytes bounds each of the texts of a consent.
const MaxConsentBytes = 512

// ConfirmedConsent is a put's consent that was confirmed by a link, asked for at a time.
func ConfirmedConsent(terms, source string, asked time.Time) json.RawMessage {
	b, _ := json.Marshal(ConsentRequest{Terms: terms, Source: source, At: asked.UTC()}) // plain: cannot fail
	return append(json.RawMessage(ConfirmedMark), b...)
}

// ConfirmedMark stands before what a client cannot write: an object begins with a brace.
const ConfirmedMark = "!"
