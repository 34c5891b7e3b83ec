package client

import (
	"context"
	"net/http"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// StartMove starts to move all server data into another database while the server works. to is
// "sqlite" for files in the data directory, or a PostgreSQL URL. It needs the operator's key.
func (c *Client) StartMove(ctx context.Context, to string) (Move, error) {
	var m Move
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/move"}, wire.MoveRequest{To: to}, &m)
	return m, err
}

// Move returns the progress of the move, or the result of the last one.
func (c *Client) Move(ctx context.Context) (Move, error) {
	var m Move
	err := c.call(ctx, get("/v1/move", nil), nil, &m)
	return m, err
}

// StopMove stops the current move. The server continues with the old database.
func (c *Client) StopMove(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/move", repeatable: true}, nil, nil)
}
