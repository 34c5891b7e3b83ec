package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare"
)

// These methods yield whole lists and request page after page. Each ends at the first error, which
// is its last pair.

// Subscriptions yields the subscriptions that q selects. If q has no state, ended subscriptions
// are included.
func (c *Client) Subscriptions(ctx context.Context, q SubscriptionQuery) iter.Seq2[SubscriptionRecord, error] {
	return List[SubscriptionRecord](ctx, c, "/v1/subscriptions", "subscriptions", q.values())
}

// An EventQuery selects events and their broadcasts. All fields may be zero.
type EventQuery struct {
	Topic string
	State string // queued, running, paused, cancelled or completed
	Lane  string
	Since time.Time // received at or after
	Until time.Time // received before
}

func (q EventQuery) values() url.Values {
	return picked(map[string]string{"topic": q.Topic, "state": q.State, "lane": q.Lane}, q.Since, q.Until)
}

func picked(texts map[string]string, since, until time.Time) url.Values {
	v := url.Values{}
	for name, text := range texts {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, at := range map[string]time.Time{"since": since, "until": until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return v
}

// Events yields events with their broadcasts, the latest first.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[fanfare.Broadcast, error] {
	return List[fanfare.Broadcast](ctx, c, "/v1/broadcasts", "broadcasts", q.values())
}

// DeliveriesOf yields the deliveries of an event. It ignores Cursor and Limit of q.
func (c *Client) DeliveriesOf(ctx context.Context, event string, q DeliveryQuery) iter.Seq2[fanfare.Delivery, error] {
	values := picked(map[string]string{"recipient": q.Recipient, "state": q.State}, time.Time{}, time.Time{})
	return List[fanfare.Delivery](ctx, c, "/v1/events/"+url.PathEscape(event)+"/deliveries", "deliveries", values)
}

// A HistoryQuery selects deliveries to one person. All fields may be zero.
type HistoryQuery struct {
	Topic   string
	Channel string
	State   string
	Since   time.Time
	Until   time.Time
}

// HistoryOf yields the deliveries to one person, by address or id, the latest first.
func (c *Client) HistoryOf(ctx context.Context, subscriber string, q HistoryQuery) iter.Seq2[fanfare.Delivery, error] {
	values := picked(map[string]string{"topic": q.Topic, "channel": q.Channel, "state": q.State}, q.Since, q.Until)
	return List[fanfare.Delivery](ctx, c, subscriberPath(subscriber)+"/deliveries", "deliveries", values)
}

// Delivery returns one delivery with all attempts (dlv-...).
func (c *Client) Delivery(ctx context.Context, id string) (fanfare.Delivery, error) {
	var d fanfare.Delivery
	err := c.call(ctx, get("/v1/deliveries/"+url.PathEscape(id), nil), nil, &d)
	return d, err
}

// MessagesBy yields the messages with a reference, or all messages if it is "", the latest first.
func (c *Client) MessagesBy(ctx context.Context, reference string) iter.Seq2[Message, error] {
	return List[Message](ctx, c, "/v1/messages", "messages", picked(map[string]string{"reference": reference}, time.Time{}, time.Time{}))
}

// Key returns one key, without its secret.
func (c *Client) Key(ctx context.Context, id string) (Key, error) {
	var k Key
	err := c.call(ctx, get("/v1/keys/"+url.PathEscape(id), nil), nil, &k)
	return k, err
}

// ChangeKey applies a JSON merge patch (RFC 7396) to a key: name, scopes, expires_at, disabled.
func (c *Client) ChangeKey(ctx context.Context, id string, patch any) (Key, error) {
	var k Key
	err := c.call(ctx, request{method: http.MethodPatch, path: "/v1/keys/" + url.PathEscape(id), repeatable: true}, patch, &k)
	return k, err
}
