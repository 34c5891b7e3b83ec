package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// CreateKey creates a key. Only this response contains its secret.
func (c *Client) CreateKey(ctx context.Context, what KeyRequest) (NewKey, error) {
	var key NewKey
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys"}, what, &key)
	return key, err
}

// Keys lists the keys that the client's key may see, in the order of their creation: the keys of
// the service, or all keys if the client has no service.
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

// RotateKey gives a key a new secret. The old secret remains valid for grace, in whole seconds and
// at most seven days.
func (c *Client) RotateKey(ctx context.Context, id string, grace time.Duration) (NewKey, error) {
	var key NewKey
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys/" + url.PathEscape(id) + "/rotate"}, wire.Rotation{Grace: int(grace / time.Second)}, &key)
	return key, err
}

// ResealKeys replaces the key with which the server seals the secrets of keys for clients of GOV.UK
// Notify, and returns the number of secrets.
func (c *Client) ResealKeys(ctx context.Context) (int, error) {
	var done wire.Resealed
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/reseal"}, nil, &done)
	return done.Keys, err
}

// DeleteKey deletes a key permanently.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/keys/" + url.PathEscape(id), repeatable: true}, nil, nil)
}
