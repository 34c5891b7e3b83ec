package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Status returns the status of the server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.call(ctx, get("/v1/status", nil), nil, &s)
	return s, err
}

// A RatesQuery selects values over time. All fields may be zero.
type RatesQuery struct {
	Since, Until time.Time     // zero: the last 24 hours
	Step         time.Duration // whole minutes up to an hour; 0: a minute
}

// Rates returns the values of the server over time, for at most 1,500 steps of the last 8 days. It needs a key for all services.
func (c *Client) Rates(ctx context.Context, q RatesQuery) (Rates, error) {
	values := url.Values{}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			values.Set(name, at.Format(time.RFC3339))
		}
	}
	if q.Step != 0 {
		values.Set("step", q.Step.String())
	}
	var r Rates
	err := c.call(ctx, get("/v1/rates", values), nil, &r)
	return r, err
}

// Nodes returns the nodes of the cluster that the server belongs to. It needs an operator key. While the cluster has no leader, it waits up
// to 25 seconds and then fails with Unavailable.
func (c *Client) Nodes(ctx context.Context) (Nodes, error) {
	var n Nodes
	err := c.call(ctx, get("/v1/nodes", nil), nil, &n)
	return n, err
}

// Event returns the broadcast of an event, by its public id or the id that the sender chose.
func (c *Client) Event(ctx context.Context, id string) (fanfare.Broadcast, error) {
	var b fanfare.Broadcast
	err := c.call(ctx, get("/v1/events/"+url.PathEscape(id), nil), nil, &b)
	return b, err
}

// Broadcasts returns the latest broadcasts.
func (c *Client) Broadcasts(ctx context.Context, limit int) ([]fanfare.Broadcast, error) {
	var b wire.Broadcasts
	err := c.call(ctx, get("/v1/broadcasts", url.Values{"limit": {strconv.Itoa(limit)}}), nil, &b)
	return b.Broadcasts, err
}

// A DeliveryQuery selects deliveries of an event. All fields may be zero.
type DeliveryQuery struct {
	Recipient string // address or subscriber; the counts then include only this recipient
	State     string // only deliveries in this state
	Reason    string // only deliveries that will not reach their recipients for this reason
	Cursor    string // Next of the previous page
	Limit     int    // 1 to 1000; 0 is 100
}

// Deliveries returns the deliveries of an event.
func (c *Client) Deliveries(ctx context.Context, event string, q DeliveryQuery) (DeliveryPage, error) {
	values := url.Values{}
	for name, value := range map[string]string{"recipient": q.Recipient, "state": q.State, "reason": q.Reason, "cursor": q.Cursor} {
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

// History returns the deliveries to one person, by address or id, the latest first.
func (c *Client) History(ctx context.Context, subscriber string, limit int) ([]fanfare.Delivery, error) {
	var page DeliveryPage
	err := c.call(ctx, get("/v1/subscribers/"+url.PathEscape(subscriber)+"/deliveries", url.Values{"limit": {strconv.Itoa(limit)}}), nil, &page)
	return page.Deliveries, err
}

// Pause stops sending in the scope until Resume.
func (c *Client) Pause(ctx context.Context, s fanfare.Scope, reason string) error {
	return c.control(ctx, "pause", s, reason)
}

// Resume continues sending in the scope.
func (c *Client) Resume(ctx context.Context, s fanfare.Scope, reason string) error {
	return c.control(ctx, "resume", s, reason)
}

// Cancel settles all messages in the scope that have not left yet as cancelled.
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

// DropParked discards parked work.
func (c *Client) DropParked(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/parked/" + url.PathEscape(id)}, nil, nil)
}
