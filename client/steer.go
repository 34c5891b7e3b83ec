package client

import (
	"context"
	"encoding/json"
	"net/http"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Approve lets a broadcast leave that waits for approval, by its public id or its
// sender's.
func (c *Client) Approve(ctx context.Context, event string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/approve"}, wire.Approve{Event: event}, nil)
}

// TryPublish counts for whom an event would be, and how long its messages would
// take; DryRun also names some of them. The event is its data or, with
// CloudEvents, a CloudEvent; the topic must be named. Nothing is published.
func (c *Client) TryPublish(ctx context.Context, topic string, event json.RawMessage, o PublishOptions) (DryRun, error) {
	if topic == "" {
		return DryRun{}, &fanfare.Error{Code: fanfare.Invalid, Message: "a dry run needs a topic", Hint: "name the topic, also for a CloudEvent"}
	}
	contentType := "application/json"
	if o.CloudEvents {
		contentType, o.CloudEvents = "application/cloudevents+json", false // there are no lines to say it of
	}
	query := o.query()
	query.Set("sample", "0")
	return c.match(ctx, topic, request{query: query, contentType: contentType, body: event})
}

// A MessageRun says what a message would set off.
type MessageRun = wire.MessageRun

// TrySend says what a message would set off. Nothing is sent.
func (c *Client) TrySend(ctx context.Context, m MessageRequest) (MessageRun, error) {
	var run MessageRun
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/dry-run/messages", repeatable: true}, m, &run)
	return run, err
}

// SetRate sets how fast a broadcast or a channel may leave: 100/s, 1000/min, 5000/h
// or unlimited; of a channel also configured.
func (c *Client) SetRate(ctx context.Context, s fanfare.Scope, rate string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/rate", repeatable: true}, wire.SetRate{Scope: s, Rate: rate}, nil)
}
