package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of requests and answers of previews.
type (
	// A PreviewRequest says what to take; its zero value takes samples.
	PreviewRequest = wire.PreviewRequest
	// A TemplateDraft is a template that is not stored.
	TemplateDraft = wire.TemplateDraft
	// A Preview is what a template says.
	Preview = wire.Preview
)

// Preview says what a template would say, stored or as the draft in the request.
// Nothing is kept or sent. An error of the template names its part and line.
func (c *Client) Preview(ctx context.Context, template string, in PreviewRequest) (Preview, error) {
	var p Preview
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/templates/" + url.PathEscape(template) + "/preview", repeatable: true}, in, &p)
	return p, err
}
