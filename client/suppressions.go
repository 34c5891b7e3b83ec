package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// A Suppression says that an address gets nothing.
type Suppression struct {
	Address     string    `json:"address,omitempty"`
	Hash        string    `json:"hash,omitempty"`   // of an address that is not kept: its owner was forgotten
	Reason      string    `json:"reason,omitempty"` // soft_bounces, imported, unsubscribed, hard_bounce, manual, complaint or erased
	Source      string    `json:"source,omitempty"` // who says so
	At          time.Time `json:"at,omitzero"`
	Until       time.Time `json:"until,omitzero"` // zero: for good
	AllServices bool      `json:"all_services,omitempty"`
}

// A SuppressionSummary says what came of a list.
type SuppressionSummary struct {
	Added  int64       `json:"added"`
	Kept   int64       `json:"kept"` // of so many the list said as much already
	Failed int64       `json:"failed"`
	Errors []LineError `json:"errors"` // the first 100 bad lines
}

// A SuppressionQuery picks from the list.
type SuppressionQuery struct {
	Reason      string
	AllServices bool // those that hold for all services, and not those of one
}

func (q SuppressionQuery) values() url.Values {
	v := url.Values{}
	if q.Reason != "" {
		v.Set("reason", q.Reason)
	}
	if q.AllServices {
		v.Set("all_services", "true")
	}
	return v
}

// Suppression tells whether an address is suppressed; NotFound where it is not.
func (c *Client) Suppression(ctx context.Context, address string) (Suppression, error) {
	var s Suppression
	err := c.call(ctx, get("/v1/suppressions", url.Values{"address": {address}}), nil, &s)
	return s, err
}

// Suppress puts an address on the list, and returns what the list says of it then.
func (c *Client) Suppress(ctx context.Context, s Suppression) (Suppression, error) {
	var is Suppression
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/suppressions", repeatable: true}, s, &is)
	return is, err
}

// LiftSuppression lets an address get messages again.
func (c *Client) LiftSuppression(ctx context.Context, address string) error {
	return c.lift(ctx, url.Values{"address": {address}})
}

// LiftForAllServices is LiftSuppression of what holds for all services.
func (c *Client) LiftForAllServices(ctx context.Context, address string) error {
	return c.lift(ctx, url.Values{"address": {address}, "all_services": {"true"}})
}

func (c *Client) lift(ctx context.Context, query url.Values) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/suppressions", query: query, repeatable: true}, nil, nil)
}

// Suppressions yields the list, the latest first. It ends at the first error, which
// is its last pair.
func (c *Client) Suppressions(ctx context.Context, q SuppressionQuery) iter.Seq2[Suppression, error] {
	return List[Suppression](ctx, c, "/v1/suppression-list", "suppressions", q.values())
}

// ExportSuppressionLines streams the list as NDJSON, each line in the form that an
// import takes. The caller closes it.
func (c *Client) ExportSuppressionLines(ctx context.Context, q SuppressionQuery) (io.ReadCloser, error) {
	return c.exportLines(ctx, get("/v1/suppression-list", q.values()))
}

// ImportSuppressions puts the addresses in lines (NDJSON) on the list, those of one
// service or of all. Bad lines are in the summary and do not stop the others; to
// import the whole again is safe. progress may be nil.
func (c *Client) ImportSuppressions(ctx context.Context, lines io.Reader, allServices bool, progress func(Progress)) (SuppressionSummary, error) {
	var sum SuppressionSummary
	query := SuppressionQuery{AllServices: allServices}.values()
	query.Set("quiet", "true")
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/suppression-list", query: query,
		contentType: ndjson, stream: counted(lines, progress)}, nil, &sum)
	return sum, err
}
