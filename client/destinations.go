package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// Destinations yields, by name, the destinations of a channel that have problems or for which
// messages wait.
func (c *Client) Destinations(ctx context.Context, channel string) iter.Seq2[Destination, error] {
	return List[Destination](ctx, c, "/v1/channels/"+url.PathEscape(channel)+"/destinations", "destinations", nil)
}

// ResumeDestination releases the messages that wait for a destination of a channel: the domain of
// mail addresses, or host:port of webhooks.
func (c *Client) ResumeDestination(ctx context.Context, channel, destination string) error {
	path := "/v1/channels/" + url.PathEscape(channel) + "/destinations/" + url.PathEscape(destination) + "/resume"
	return c.call(ctx, request{method: http.MethodPost, path: path, repeatable: true}, nil, nil)
}
