package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// A Subscriber is a person or machine with its addresses.
type Subscriber struct {
	ID         string          `json:"id,omitempty"` // chosen by the client, or per-…
	Addresses  []Address       `json:"addresses,omitempty"`
	Locale     string          `json:"locale,omitempty"`    // BCP 47, such as de-AT
	TimeZone   string          `json:"time_zone,omitempty"` // IANA name
	Attributes json.RawMessage `json:"attributes,omitempty"`

	// ETag is the version that was read. Changing a Subscriber with an ETag fails with
	// precondition_failed if it was changed since.
	ETag string `json:"-"`
}

// An Address is an address of a subscriber. Channels use the first address of their kind by
// default.
type Address struct {
	Kind    string `json:"kind"` // mail
	Address string `json:"address"`
	Label   string `json:"label,omitempty"`
}

func subscriberPath(id string) string { return "/v1/subscribers/" + url.PathEscape(id) }

// subscriber makes a call that returns a subscriber.
func (c *Client) subscriber(ctx context.Context, r request, in any) (s Subscriber, err error) {
	r.tag = &s.ETag
	err = c.call(ctx, r, in, &s)
	return s, err
}

// ifMatch makes a change conditional on the version that was read, if tag is not "".
func ifMatch(tag string) http.Header {
	if tag == "" {
		return nil
	}
	return http.Header{"If-Match": {tag}}
}

// Subscriber returns one subscriber by id.
func (c *Client) Subscriber(ctx context.Context, id string) (Subscriber, error) {
	return c.subscriber(ctx, get(subscriberPath(id), nil), nil)
}

// Subscribers yields all subscribers of the service or, if address is not "", the one with that
// address. It ends at the first error, which is its last pair.
func (c *Client) Subscribers(ctx context.Context, address string) iter.Seq2[Subscriber, error] {
	q := url.Values{}
	if address != "" {
		q.Set("address", address)
	}
	return List[Subscriber](ctx, c, "/v1/subscribers", "subscribers", q)
}

// PutSubscriber creates the subscriber with the id of s or replaces it completely. Without an id
// it creates a subscriber and does not repeat the call.
func (c *Client) PutSubscriber(ctx context.Context, s Subscriber) (Subscriber, error) {
	if s.ID == "" {
		return c.subscriber(ctx, request{method: http.MethodPost, path: "/v1/subscribers"}, s)
	}
	id := s.ID
	s.ID = "" // the path has it
	return c.subscriber(ctx, request{method: http.MethodPut, path: subscriberPath(id), repeatable: s.ETag == "", header: ifMatch(s.ETag)}, s)
}

// PatchSubscriber applies a JSON merge patch (RFC 7396). etag may be "".
func (c *Client) PatchSubscriber(ctx context.Context, id string, patch any, etag string) (Subscriber, error) {
	return c.subscriber(ctx, request{method: http.MethodPatch, path: subscriberPath(id), repeatable: etag == "", header: ifMatch(etag)}, patch)
}

// DeleteSubscriber ends all subscriptions of a subscriber and removes the subscriber from the
// lists; the history stays. After it returns nil, no message for the subscriber can leave. etag
// may be "".
func (c *Client) DeleteSubscriber(ctx context.Context, id, etag string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: subscriberPath(id), repeatable: etag == "", header: ifMatch(etag)}, nil, nil)
}

// MergeSubscriber merges a subscriber into another, which it returns.
func (c *Client) MergeSubscriber(ctx context.Context, id, into string) (Subscriber, error) {
	return c.subscriber(ctx, request{method: http.MethodPost, path: subscriberPath(id) + "/merge"}, map[string]string{"into": into})
}

// Erased counts the data that was erased with a person.
type Erased struct {
	Deliveries    int64 `json:"deliveries"`
	Subscriptions int64 `json:"subscriptions"`
}

// EraseSubscriber erases a person, including the history. With suppress, the addresses stay
// suppressed and are stored only as keyed hashes.
func (c *Client) EraseSubscriber(ctx context.Context, id string, suppress bool) (Erased, error) {
	var e Erased
	err := c.call(ctx, request{method: http.MethodPost, path: subscriberPath(id) + "/erase"}, map[string]bool{"suppress": suppress}, &e)
	return e, err
}

// ExportSubscriber streams all data stored about a person, as NDJSON. The caller closes the
// stream.
func (c *Client) ExportSubscriber(ctx context.Context, id string) (io.ReadCloser, error) {
	response, err := c.do(ctx, get(subscriberPath(id)+"/export", nil)) //nolint:bodyclose // the caller closes the stream
	if err != nil {
		return nil, err
	}
	return &stream{response.Body, c.base}, nil
}
