package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
)

const ndjson = "application/x-ndjson"

// PutSubscription creates a subscription or replaces the one with the same id. Without an id it
// replaces the equal subscription, if there is one.
func (c *Client) PutSubscription(ctx context.Context, s Subscription) (Subscribed, error) {
	var put Subscribed
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/subscriptions", repeatable: true}, s, &put)
	return put, err
}

// Subscription returns one subscription.
func (c *Client) Subscription(ctx context.Context, id string) (SubscriptionRecord, error) {
	var s SubscriptionRecord
	err := c.call(ctx, get("/v1/subscriptions/"+url.PathEscape(id), nil), nil, &s)
	return s, err
}

// EndSubscription ends a subscription. After it returns nil, no message for the subscription can
// leave.
func (c *Client) EndSubscription(ctx context.Context, id, reason string) error {
	r := request{method: http.MethodDelete, path: "/v1/subscriptions/" + url.PathEscape(id), repeatable: true}
	if reason != "" {
		r.query = url.Values{"reason": {reason}}
	}
	return c.call(ctx, r, nil, nil)
}

// PauseSubscription pauses a subscription. After it returns nil, no message for the subscription
// can leave until it is resumed; waiting messages are not sent.
func (c *Client) PauseSubscription(ctx context.Context, id string) error {
	return c.setPaused(ctx, id, "pause")
}

// ResumeSubscription resumes a paused subscription, which then receives events published from now
// on.
func (c *Client) ResumeSubscription(ctx context.Context, id string) error {
	return c.setPaused(ctx, id, "resume")
}

func (c *Client) setPaused(ctx context.Context, id, verb string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/subscriptions/" + url.PathEscape(id) + "/" + verb, repeatable: true}, nil, nil)
}

// ImportSubscriptions puts the subscriptions in lines (NDJSON), as fast as the server accepts
// them. Bad lines are in the summary and do not stop the others. After an error, the lines before
// the one that the error names are stored. Importing all lines again is safe if each has an id or
// they are equal. progress may be nil.
func (c *Client) ImportSubscriptions(ctx context.Context, lines io.Reader, progress func(Progress)) (PutSummary, error) {
	var sum PutSummary
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/subscriptions", query: url.Values{"quiet": {"true"}},
		contentType: ndjson, stream: counted(lines, progress)}, nil, &sum)
	return sum, err
}

// PutSubscriptions imports a sequence like ImportSubscriptions. It ends at the first error that
// the sequence yields; the subscriptions before it are put.
func (c *Client) PutSubscriptions(ctx context.Context, all iter.Seq2[Subscription, error], progress func(Progress)) (PutSummary, error) {
	reader, writer := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(writer, 64<<10)
		failed <- encodeAll(out, all)
		writer.CloseWithError(out.Flush()) // the subscriptions before the error are put
	}()
	sum, err := c.ImportSubscriptions(ctx, reader, progress)
	_ = reader.Close() // never fails; it ends the sequence if the server stopped reading
	if sequence := <-failed; err == nil {
		err = sequence
	}
	return sum, err
}

// encodeAll writes a line for each subscription, up to the first error.
func encodeAll(w io.Writer, all iter.Seq2[Subscription, error]) error {
	lines := json.NewEncoder(w)
	for s, err := range all {
		if err != nil {
			return err
		}
		if err := lines.Encode(s); err != nil {
			return err
		}
	}
	return nil
}
