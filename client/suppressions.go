package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// A Suppression is an entry for an address to which nothing is sent.
type Suppression struct {
	Address     string    `json:"address,omitempty"`
	Hash        string    `json:"hash,omitempty"`   // of an address that is not stored because its owner was erased
	Reason      string    `json:"reason,omitempty"` // soft_bounces, imported, unsubscribed, hard_bounce, manual, complaint or erased
	Source      string    `json:"source,omitempty"` // where the suppression comes from
	At          time.Time `json:"at,omitzero"`
	Until       time.Time `json:"until,omitzero"` // zero: permanent
	AllServices bool      `json:"all_services,omitempty"`
}

// A SuppressionSummary is the result of an import.
type SuppressionSummary struct {
	Added  int64       `json:"added"`
	Kept   int64       `json:"kept"` // addresses for which the list already said as much
	Failed int64       `json:"failed"`
	Errors []LineError `json:"errors"` // the first 100 bad lines
}

// A SuppressionQuery selects entries of the list.
type SuppressionQuery struct {
	Reason      string
	AllServices bool // entries for all services instead of those of one service
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

// Suppression returns the suppression of an address, or NotFound if there is none.
func (c *Client) Suppression(ctx context.Context, address string) (Suppression, error) {
	var s Suppression
	err := c.call(ctx, get("/v1/suppressions", url.Values{"address": {address}}), nil, &s)
	return s, err
}

// Suppress adds an address to the list, and returns the resulting entry.
func (c *Client) Suppress(ctx context.Context, s Suppression) (Suppression, error) {
	var is Suppression
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/suppressions", repeatable: true}, s, &is)
	return is, err
}

// LiftSuppression removes the suppression of an address.
func (c *Client) LiftSuppression(ctx context.Context, address string) error {
	return c.lift(ctx, url.Values{"address": {address}})
}

// LiftForAllServices removes a suppression that applies to all services.
func (c *Client) LiftForAllServices(ctx context.Context, address string) error {
	return c.lift(ctx, url.Values{"address": {address}, "all_services": {"true"}})
}

func (c *Client) lift(ctx context.Context, query url.Values) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/suppressions", query: query, repeatable: true}, nil, nil)
}

// Suppressions yields the list, the latest entry first. It ends at the first error, which is its
// last pair.
func (c *Client) Suppressions(ctx context.Context, q SuppressionQuery) iter.Seq2[Suppression, error] {
	return List[Suppression](ctx, c, "/v1/suppression-list", "suppressions", q.values())
}

// ExportSuppressionLines streams the list as NDJSON, in the format of an import. The caller closes
// the stream.
func (c *Client) ExportSuppressionLines(ctx context.Context, q SuppressionQuery) (io.ReadCloser, error) {
	return c.exportLines(ctx, get("/v1/suppression-list", q.values()))
}

// ImportSuppressions adds the addresses in lines (NDJSON) to the list of one service or of all
// services. Bad lines are in the summary and do not stop the others. Importing all lines again is
// safe. progress may be nil.
func (c *Client) ImportSuppressions(ctx context.Context, lines io.Reader, allServices bool, progress func(Progress)) (SuppressionSummary, error) {
	var sum SuppressionSummary
	query := SuppressionQuery{AllServices: allServices}.values()
	query.Set("quiet", "true")
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/suppression-list", query: query,
		contentType: ndjson, stream: counted(lines, progress)}, nil, &sum)
	return sum, err
}
