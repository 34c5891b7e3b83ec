package client

import (
	"context"
	"net/http"
	"net/url"
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
