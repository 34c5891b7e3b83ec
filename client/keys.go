package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// CreateKey makes a key. Its secret is shown this once.
func (c *Client) CreateKey(ctx context.Context, what KeyRequest) (NewKey, error) {
	var key NewKey
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys"}, what, &key)
	return key, err
}

// Keys lists the keys that the client's key may see, in the order in which they
// were made: those of the service, or without one all.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var all []Key
	query := url.Values{"limit": {"1000"}}
	for {
		var page wire.KeyPage
		if err := c.call(ctx, get("/v1/keys", query), nil, &page); err != nil {
			return all, err
		}
		all = append(all, page.Keys...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

// RotateKey gives a key a new secret. The old one goes on to work for grace, of
// at most seven days, in whole seconds.
func (c *Client) RotateKey(ctx context.Context, id string, grace time.Duration) (NewKey, error) {
	var key NewKey
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys/" + url.PathEscape(id) + "/rotate"}, wire.Rotation{Grace: int(grace / time.Second)}, &key)
	return key, err
}

// DeleteKey ends a key for good.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/keys/" + url.PathEscape(id), repeatable: true}, nil, nil)
}
