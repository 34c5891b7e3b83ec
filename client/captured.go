package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// A CapturedQuery selects captured messages. All fields may be zero.
type CapturedQuery struct {
	Channel   string // name of the channel
	Recipient string // address or, for webhooks, URL
	Subject   string // text that the subject contains, in any case
	Cursor    string // Next of the previous page
	Limit     int    // 1 to 1000; 0 is 100
}

// Captured returns a page of the messages that the server captured in a folder, and of those of channels with the driver file, the newest
// first. A page with a filter can have fewer messages than the limit and a Next.
func (c *Client) Captured(ctx context.Context, q CapturedQuery) (CapturedPage, error) {
	values := url.Values{}
	for name, value := range map[string]string{"channel": q.Channel, "recipient": q.Recipient, "subject": q.Subject, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var page CapturedPage
	err := c.call(ctx, get("/v1/captured", values), nil, &page)
	return page, err
}

func capturedPath(id string) string { return "/v1/captured/" + url.PathEscape(id) }

// CapturedMessage returns a captured message with its content.
func (c *Client) CapturedMessage(ctx context.Context, id string) (CapturedContent, error) {
	var m CapturedContent
	err := c.call(ctx, get(capturedPath(id), nil), nil, &m)
	return m, err
}

// CapturedHTML returns the HTML of a captured message without scripts, and with its images as data. The caller closes it.
func (c *Client) CapturedHTML(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.stream(ctx, capturedPath(id)+"/html")
}

// CapturedSource returns a captured message as it was written. The caller closes it.
func (c *Client) CapturedSource(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.stream(ctx, capturedPath(id)+"/source")
}

// CapturedAttachment returns the content of an attachment by its number, from 1. The caller closes it.
func (c *Client) CapturedAttachment(ctx context.Context, id string, number int) (io.ReadCloser, error) {
	return c.stream(ctx, capturedPath(id)+"/attachments/"+strconv.Itoa(number))
}

func (c *Client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	response, err := c.do(ctx, get(path, nil))
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// DeleteCaptured deletes a captured message.
func (c *Client) DeleteCaptured(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: capturedPath(id), repeatable: true}, nil, nil)
}

// ClearCaptured deletes all captured messages of the service; with a key for all services and without ForService, those of all services.
func (c *Client) ClearCaptured(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/captured", repeatable: true}, nil, nil)
}
