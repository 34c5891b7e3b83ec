package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// Backup returns a backup of all server data as one stream, which the caller closes.
// bytesPerSecond limits the rate; 0 means no limit. Reading fails if the server had to end the
// stream. To check that the backup is complete, run `fanfare backup verify`. Backup needs the
// operator's key.
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

// Restored describes the backup from which the server was restored, with a page of the messages that may
// have been sent since. It returns NotFound if the server was not restored.
func (c *Client) Restored(ctx context.Context, cursor string, limit int) (Restored, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var r Restored
	err := c.call(ctx, get("/v1/restored", query), nil, &r)
	return r, err
}
