package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and answers of the template linter.
type (
	// A LintRequest says what to look at; its zero value takes what is stored.
	LintRequest = wire.LintRequest
	// A Lint is what readers are going to mind of a template.
	Lint = wire.Lint
	// A Finding is one thing of it, with its place and what to do.
	Finding = wire.Finding
)

// Lint says what readers are going to mind of a template, stored or as the draft in
// the request. Nothing is asked of the network, kept or sent.
func (c *Client) Lint(ctx context.Context, template string, in LintRequest) (Lint, error) {
	var found Lint
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/templates/" + url.PathEscape(template) + "/lint", repeatable: true}, in, &found)
	return found, err
}
