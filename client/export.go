package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// A SubscriptionQuery selects subscriptions; its zero value selects all.
type SubscriptionQuery struct {
	Topic      string
	Channel    string
	Subscriber string // id of a subscriber, or an address
	State      string // active, paused or ended; exports never include ended subscriptions
}

func (q SubscriptionQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"topic": q.Topic, "channel": q.Channel, "subscriber": q.Subscriber, "state": q.State} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// ExportLines streams the active and paused subscriptions as NDJSON, in the format of an import.
// Reading fails if the connection breaks; the list is complete if it ends without an error. The
// caller closes the stream.
func (c *Client) ExportLines(ctx context.Context, q SubscriptionQuery) (io.ReadCloser, error) {
	q.State = ""
	return c.exportLines(ctx, get("/v1/subscriptions", q.values()))
}

// ExportSubscriberLines streams the subscribers like ExportLines.
func (c *Client) ExportSubscriberLines(ctx context.Context) (io.ReadCloser, error) {
	return c.exportLines(ctx, get("/v1/subscribers", nil))
}

func (c *Client) exportLines(ctx context.Context, r request) (io.ReadCloser, error) {
	r.header = http.Header{"Accept": {ndjson}}
	response, err := c.do(ctx, r) //nolint:bodyclose // the caller closes the stream
	if err != nil {
		return nil, err
	}
	return &stream{response.Body, c.base}, nil
}

// A stream returns a broken connection as an *Unreachable.
type stream struct {
	io.ReadCloser
	server string
}

// Read reads the body.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &Unreachable{s.server, fmt.Errorf("the list ended early: %w", err)}
	}
	return n, err
}

// ExportSubscriptions yields the active and paused subscriptions, in the format of an import. It
// ends at the first error, which is its last pair.
func (c *Client) ExportSubscriptions(ctx context.Context, q SubscriptionQuery) iter.Seq2[Subscription, error] {
	return func(yield func(Subscription, error) bool) {
		body, err := c.ExportLines(ctx, q)
		if err != nil {
			yield(Subscription{}, err)
			return
		}
		defer body.Close()
		for d := json.NewDecoder(body); ; {
			var s Subscription
			err := d.Decode(&s)
			if err == io.EOF {
				return
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}
