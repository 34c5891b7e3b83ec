package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/api/wire"
)

// Apply makes the configuration of a service be as the document says (YAML or
// JSON, with files inlined), and returns what changed; with dryRun only what
// would. Applying it again changes nothing.
func (c *Client) Apply(ctx context.Context, document []byte, dryRun bool) (Diff, error) {
	r := request{method: http.MethodPost, path: "/v1/apply", contentType: "application/yaml", body: document, repeatable: true}
	if dryRun {
		r.query = url.Values{"dry_run": {"true"}}
	}
	var diff Diff
	err := c.call(ctx, r, nil, &diff)
	return diff, err
}

// CreateKey makes a key of one service and returns its secret, which is shown
// this once.
func (c *Client) CreateKey(ctx context.Context, service, name string) (string, error) {
	var key wire.Key
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys"}, wire.KeyRequest{Service: service, Name: name}, &key)
	return key.Key, err
}
