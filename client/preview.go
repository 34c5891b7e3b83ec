package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// PreviewHTML returns the HTML of a preview without scripts, and with its images as data. Of the request, it uses the version, the draft, the topic, the locale, the
// device, the event, and the data. The caller closes it.
func (c *Client) PreviewHTML(ctx context.Context, template string, in PreviewRequest) (io.ReadCloser, error) {
	query := picked(map[string]string{"topic": in.Topic, "locale": in.Locale, "device": in.Device, "event": in.Event, "data": string(in.Data)}, time.Time{}, time.Time{})
	if in.Version != 0 {
		query.Set("version", strconv.Itoa(in.Version))
	}
	if in.Draft {
		query.Set("draft", "true")
	}
	response, err := c.do(ctx, get("/v1/templates/"+url.PathEscape(template)+"/html", query))
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
