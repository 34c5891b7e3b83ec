package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// SendOptions specify how to send a message. All fields can be zero.
type SendOptions struct {
	// Key is the Idempotency-Key: a message with the same key is sent only once. If Key is empty, the
	// client makes one, so that it can repeat a request that got no response.
	Key string
	// Wait is how long to wait until all deliveries are settled, at most 30 s.
	Wait time.Duration
}

func waiting(wait time.Duration) url.Values {
	if wait <= 0 {
		return nil
	}
	return url.Values{"wait": {wait.String()}}
}

// Send sends a message to the named recipients.
func (c *Client) Send(ctx context.Context, m MessageRequest, o SendOptions) (Message, error) {
	if o.Key == "" {
		o.Key = rand.Text()
	}
	var sent Message
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/messages", query: waiting(o.Wait), repeatable: true,
		header: http.Header{"Idempotency-Key": {`"` + o.Key + `"`}}}, m, &sent)
	return sent, err
}

// Message returns a message with its outcomes, by its id (msg-...). If wait is not 0, it returns
// once all deliveries are settled, or after wait.
func (c *Client) Message(ctx context.Context, id string, wait time.Duration) (Message, error) {
	var m Message
	err := c.call(ctx, get("/v1/messages/"+url.PathEscape(id), waiting(wait)), nil, &m)
	return m, err
}

// Messages lists the messages with a reference, the latest first. cursor is "" or Next of the
// previous page; limit 0 means 100.
func (c *Client) Messages(ctx context.Context, reference, cursor string, limit int) (MessagePage, error) {
	q := url.Values{"reference": {reference}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	var page MessagePage
	err := c.call(ctx, get("/v1/messages", q), nil, &page)
	return page, err
}
