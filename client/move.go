package client

import (
	"context"
	"net/http"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// StartMove begins to move all that the server keeps into another database, while
// it works: "sqlite" for the files in its data directory, or the URL of a
// PostgreSQL. It needs the operator's key.
func (c *Client) StartMove(ctx context.Context, to string) (Move, error) {
	var m Move
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/move"}, wire.MoveRequest{To: to}, &m)
	return m, err
}

// Move tells how far the move is, or what came of the last.
func (c *Client) Move(ctx context.Context) (Move, error) {
	var m Move
	err := c.call(ctx, get("/v1/move", nil), nil, &m)
	return m, err
}

// StopMove ends the move that is under way: the old database stays in charge.
func (c *Client) StopMove(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/move", repeatable: true}, nil, nil)
}
