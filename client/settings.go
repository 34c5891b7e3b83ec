package client

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A Setting is a setting of the server with its value.
type Setting = wire.Setting

// Settings returns the settings of the server, without secrets. It needs the key of an operator.
func (c *Client) Settings(ctx context.Context) ([]Setting, error) {
	var all wire.Settings
	err := c.call(ctx, get("/v1/settings", nil), nil, &all)
	return all.Settings, err
}
