package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Status says how the server is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.call(ctx, get("/v1/status", nil), nil, &s)
	return s, err
}

// Event returns what an event set off, by its public id or its sender's.
func (c *Client) Event(ctx context.Context, id string) (fanfare.Broadcast, error) {
	var b fanfare.Broadcast
	err := c.call(ctx, get("/v1/events/"+url.PathEscape(id), nil), nil, &b)
	return b, err
}

// Broadcasts returns the latest events and what became of them.
func (c *Client) Broadcasts(ctx context.Context, limit int) ([]fanfare.Broadcast, error) {
	var b wire.Broadcasts
	err := c.call(ctx, get("/v1/broadcasts", url.Values{"limit": {strconv.Itoa(limit)}}), nil, &b)
	return b.Broadcasts, err
}

// A DeliveryQuery picks deliveries of an event. All fields may be zero.
type DeliveryQuery struct {
	Recipient string // only those to this address or subscriber; the others do not count then
	State     string // only those in this state
	Cursor    string // Next of the page before
	Limit     int    // 1 to 1000; 0 is 100
}

// Deliveries returns who got an event, and how.
func (c *Client) Deliveries(ctx context.Context, event string, q DeliveryQuery) (DeliveryPage, error) {
	values := url.Values{}
	for name, value := range map[string]string{"recipient": q.Recipient, "state": q.State, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var page DeliveryPage
	err := c.call(ctx, get("/v1/events/"+url.PathEscape(event)+"/deliveries", values), nil, &page)
	return page, err
}

// History returns what one person got, the latest first; by address or id.
func (c *Client) History(ctx context.Context, subscriber string, limit int) ([]fanfare.Delivery, error) {
	var page DeliveryPage
	err := c.call(ctx, get("/v1/subscribers/"+url.PathEscape(subscriber)+"/deliveries", url.Values{"limit": {strconv.Itoa(limit)}}), nil, &page)
	return page.Deliveries, err
}

// Pause lets nothing leave of what the scope reaches, until Resume.
func (c *Client) Pause(ctx context.Context, s fanfare.Scope, reason string) error {
	return c.control(ctx, "pause", s, reason)
}

// Resume lets leave again what was paused.
func (c *Client) Resume(ctx context.Context, s fanfare.Scope, reason string) error {
	return c.control(ctx, "resume", s, reason)
}

// Cancel settles as cancelled what has not left yet.
func (c *Client) Cancel(ctx context.Context, s fanfare.Scope, reason string) error {
	return c.control(ctx, "cancel", s, reason)
}

func (c *Client) control(ctx context.Context, what string, s fanfare.Scope, reason string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/" + what, repeatable: true}, wire.Control{Scope: s, Reason: reason}, nil)
}

// Parked lists work that failed too often and waits for an operator.
func (c *Client) Parked(ctx context.Context) ([]fanfare.Parked, error) {
	var all []fanfare.Parked
	for one, err := range List[fanfare.Parked](ctx, c, "/v1/parked", "parked", nil) {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// RetryParked tries parked work again.
func (c *Client) RetryParked(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/parked/" + url.PathEscape(id) + "/retry"}, nil, nil)
}

// DropParked gives parked work up.
func (c *Client) DropParked(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/parked/" + url.PathEscape(id)}, nil, nil)
}
