package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare"
)

// Explain returns why an event matched a subscription or not. event is a public id (evt-...) or
// the id that the sender chose.
func (c *Client) Explain(ctx context.Context, subscription, event string) (fanfare.Explanation, error) {
	var e fanfare.Explanation
	err := c.call(ctx, get("/v1/subscriptions/"+url.PathEscape(subscription)+"/explain", url.Values{"event": {event}}), nil, &e)
	return e, err
}

// ExplainData returns whether an event with this data would match a subscription, and why. topic
// may be "". Nothing is published.
func (c *Client) ExplainData(ctx context.Context, subscription, topic string, data json.RawMessage) (fanfare.Explanation, error) {
	r := request{method: http.MethodPost, path: "/v1/subscriptions/" + url.PathEscape(subscription) + "/explain", repeatable: true}
	if topic != "" {
		r.query = url.Values{"topic": {topic}}
	}
	var e fanfare.Explanation
	err := c.call(ctx, r, data, &e)
	return e, err
}
