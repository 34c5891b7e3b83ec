package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// Backup returns all that the server keeps, as one stream, which the caller
// closes. At most bytesPerSecond come, or as many as are read where it is 0.
// Reading fails where the server had to end it; whether it is whole, its manifest
// tells: `fanfare backup verify`. It needs the operator's key.
func (c *Client) Backup(ctx context.Context, bytesPerSecond int64) (io.ReadCloser, error) {
	query := url.Values{}
	if bytesPerSecond > 0 {
		query.Set("rate", strconv.FormatInt(bytesPerSecond, 10))
	}
	response, err := c.do(ctx, get("/v1/backup", query))
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Restored says which backup the server was restored from, with a page of what
// may have left since. NotFound is a server that was not restored.
func (c *Client) Restored(ctx context.Context, cursor string, limit int) (Restored, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var r Restored
	err := c.call(ctx, get("/v1/restored", query), nil, &r)
	return r, err
}
