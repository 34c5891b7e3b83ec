package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and responses of the template linter.
type (
	// A LintRequest specifies the template to check; its zero value checks the stored template.
	LintRequest = wire.LintRequest
	// A Lint lists the problems that recipients would have with a template.
	Lint = wire.Lint
	// A Finding is one problem, with its place and what to do.
	Finding = wire.Finding
)

// Lint checks a template, stored or as the draft in the request, for problems that recipients
// would have. It uses no network, stores nothing and sends nothing.
func (c *Client) Lint(ctx context.Context, template string, in LintRequest) (Lint, error) {
	var found Lint
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/templates/" + url.PathEscape(template) + "/lint", repeatable: true}, in, &found)
	return found, err
}
