package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// A SignUp is a subscription that the person has not confirmed yet.
type SignUp struct {
	Topic    string          `json:"topic"`
	Channel  string          `json:"channel"` // a channel that sends mail
	To       string          `json:"to"`      // address to which the confirmation link is mailed
	Rule     string          `json:"rule,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Cadence  string          `json:"cadence,omitempty"`
	Locale   string          `json:"locale,omitempty"`
	TimeZone string          `json:"time_zone,omitempty"`
	Terms    string          `json:"terms,omitempty"`  // version or URL of the terms
	Source   string          `json:"source,omitempty"` // where the person signed up
}

// SignUp mails a link to confirm a subscription. The result does not reveal whether the
// subscription exists or whether the address is suppressed.
func (c *Client) SignUp(ctx context.Context, s SignUp) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/signups"}, s, nil)
}

// A Consent is a proof that a person requested a subscription.
type Consent struct {
	Subscription string    `json:"subscription"`
	Address      string    `json:"address"`
	How          string    `json:"how"` // confirmed, or vouched
	Topic        string    `json:"topic"`
	Terms        string    `json:"terms"`
	Source       string    `json:"source"`
	AskedAt      time.Time `json:"asked_at"`
	At           time.Time `json:"at"`
}

// Consents returns the consents of a subscriber, the latest first.
func (c *Client) Consents(ctx context.Context, subscriber string) ([]Consent, error) {
	var list struct {
		Consents []Consent `json:"consents"`
	}
	err := c.call(ctx, get(subscriberPath(subscriber)+"/consents", nil), nil, &list)
	return list.Consents, err
}
