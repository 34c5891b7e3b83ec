package client

import (
	"context"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A ReceiverSecret is the secret with which a receiver verifies webhooks.
type ReceiverSecret = wire.ReceiverSecret

// ReceiverSecret returns the secret of the receiver at a URL, or several while the secret of the
// channel is being replaced. It needs a key with the scope secrets.
func (c *Client) ReceiverSecret(ctx context.Context, channel, to string) (ReceiverSecret, error) {
	var secret ReceiverSecret
	err := c.call(ctx, get("/v1/channels/"+url.PathEscape(channel)+"/secret", url.Values{"to": {to}}), nil, &secret)
	return secret, err
}
