package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and responses of previews.
type (
	// A PreviewRequest holds the data of a preview; its zero value uses samples.
	PreviewRequest = wire.PreviewRequest
	// A TemplateDraft is a template that is not stored.
	TemplateDraft = wire.TemplateDraft
	// A Preview is a rendered template.
	Preview = wire.Preview
)

// Preview renders a template, stored or as the draft in the request. Nothing is stored or sent. An
// error of the template names its part and line.
func (c *Client) Preview(ctx context.Context, template string, in PreviewRequest) (Preview, error) {
	var p Preview
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/templates/" + url.PathEscape(template) + "/preview", repeatable: true}, in, &p)
	return p, err
}
