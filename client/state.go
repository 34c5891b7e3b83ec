package client

import (
	"context"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of the states of a topic.
type (
	// A KeyState is the last event of a key.
	KeyState = wire.KeyState
	// A StatePage is a page of the states of a topic, by key.
	StatePage = wire.StatePage
)

// State returns the last event of a key of a topic, or NotFound if the key has none.
func (c *Client) State(ctx context.Context, topic, key string) (KeyState, error) {
	var state KeyState
	err := c.call(ctx, get("/v1/topics/"+url.PathEscape(topic)+"/state/"+url.PathEscape(key), nil), nil, &state)
	return state, err
}

// States returns the last events of limit keys of a topic, in the order of the keys. cursor is
// next of the previous page, or "".
func (c *Client) States(ctx context.Context, topic, cursor string, limit int) (StatePage, error) {
	query := url.Values{}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var page StatePage
	err := c.call(ctx, get("/v1/topics/"+url.PathEscape(topic)+"/state", query), nil, &page)
	return page, err
}
