package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// A SignUp is what somebody wants to be told, who has yet to confirm it.
type SignUp struct {
	Topic    string          `json:"topic"`
	Channel  string          `json:"channel"` // one that sends mail
	To       string          `json:"to"`      // the link to confirm is mailed there
	Rule     string          `json:"rule,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Cadence  string          `json:"cadence,omitempty"`
	Locale   string          `json:"locale,omitempty"`
	TimeZone string          `json:"time_zone,omitempty"`
	Terms    string          `json:"terms,omitempty"`  // version or URL of what they agree to
	Source   string          `json:"source,omitempty"` // where they asked
}

// SignUp mails somebody a link to confirm a subscription. It returns the same whether
// or not they have it, and whether or not they may be written to.
func (c *Client) SignUp(ctx context.Context, s SignUp) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/signups"}, s, nil)
}

// A Consent is a proof that somebody asked for a subscription.
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

// Consents returns what a subscriber agreed to, the latest first.
func (c *Client) Consents(ctx context.Context, subscriber string) ([]Consent, error) {
	var list struct {
		Consents []Consent `json:"consents"`
	}
	err := c.call(ctx, get(subscriberPath(subscriber)+"/consents", nil), nil, &list)
	return list.Consents, err
}
