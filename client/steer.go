package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Approve releases a broadcast that waits for approval, by its public id or the id that the sender
// chose.
func (c *Client) Approve(ctx context.Context, event string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/approve"}, wire.Approve{Event: event}, nil)
}

// TryPublish counts the recipients that an event would reach, and estimates how long its messages
// would take; DryRun also lists some recipients. event is the data or, with CloudEvents, a
// CloudEvent; the topic must be named. Nothing is published.
func (c *Client) TryPublish(ctx context.Context, topic string, event json.RawMessage, o PublishOptions) (DryRun, error) {
	if topic == "" {
		return DryRun{}, &fanfare.Error{Code: fanfare.Invalid, Message: "a dry run requires a topic", Hint: "specify the topic, even for a CloudEvent"}
	}
	contentType := "application/json"
	if o.CloudEvents {
		contentType, o.CloudEvents = "application/cloudevents+json", false // the option applies only to lines
	}
	query := o.query()
	query.Set("sample", "0")
	return c.match(ctx, topic, request{query: query, contentType: contentType, body: event})
}

// A MessageRun is the result of the dry run of a message.
type MessageRun = wire.MessageRun

// TrySend returns what sending a message would cause. Nothing is sent.
func (c *Client) TrySend(ctx context.Context, m MessageRequest) (MessageRun, error) {
	var run MessageRun
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/dry-run/messages", repeatable: true}, m, &run)
	return run, err
}

// Recall removes the messages of a broadcast from the mailboxes of the recipients who have not opened them, and
// cancels those that are not in a mailbox yet. Messages of channels with another driver than inbox are not affected.
func (c *Client) Recall(ctx context.Context, event string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/broadcasts/" + url.PathEscape(event) + "/recall", repeatable: true}, nil, nil)
}

// Expire sets the time at which the messages of a broadcast are removed from mailboxes; the zero time is never.
func (c *Client) Expire(ctx context.Context, event string, at time.Time) error {
	var in wire.Expiry
	if !at.IsZero() {
		in.At = &at
	}
	return c.call(ctx, request{method: http.MethodPut, path: "/v1/broadcasts/" + url.PathEscape(event) + "/expiry", repeatable: true}, in, nil)
}

// SetRate limits the sending rate of a broadcast or a channel: 100/s, 1000/min, 5000/h or
// unlimited. For a channel, "configured" restores the configured rate.
func (c *Client) SetRate(ctx context.Context, s fanfare.Scope, rate string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/rate", repeatable: true}, wire.SetRate{Scope: s, Rate: rate}, nil)
}
