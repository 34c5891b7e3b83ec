package client

import (
	"context"
	"net/http"
	"net/url"
)

// Apply changes the configuration of a service to match the document (YAML or JSON, with files
// inlined), and returns the changes. With dryRun it only returns the changes that it would make.
// Applying a document again changes nothing.
func (c *Client) Apply(ctx context.Context, document []byte, dryRun bool) (Diff, error) {
	r := request{method: http.MethodPost, path: "/v1/apply", contentType: "application/yaml", body: document, repeatable: true}
	if dryRun {
		r.query = url.Values{"dry_run": {"true"}}
	}
	var diff Diff
	err := c.call(ctx, r, nil, &diff)
	return diff, err
}
