package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

type (
	// A SearchIndex is the state of the search index of mailboxes.
	SearchIndex = wire.SearchIndex
	// A Reindexing is a part of the work of indexing messages again.
	Reindexing = wire.Reindexing
)

// MailboxSearchIndex returns the state of the search index of mailboxes.
func (c *Client) MailboxSearchIndex(ctx context.Context) (SearchIndex, error) {
	var index SearchIndex
	err := c.call(ctx, get("/v1/mailbox-search-index", nil), nil, &index)
	return index, err
}

// ReindexMailbox puts a part of the messages of a mailbox into the queue of the search index, which indexes them again. cursor is "" for the first part,
// then Next of the part before.
func (c *Client) ReindexMailbox(ctx context.Context, address, cursor string) (Reindexing, error) {
	return c.reindex(ctx, mailboxPath(address)+"/reindex", cursor)
}

// ReindexAllMailboxes is ReindexMailbox for the messages of all mailboxes. It needs a key for all services.
func (c *Client) ReindexAllMailboxes(ctx context.Context, cursor string) (Reindexing, error) {
	return c.reindex(ctx, "/v1/mailbox-search-index/reindex", cursor)
}

func (c *Client) reindex(ctx context.Context, path, cursor string) (Reindexing, error) {
	var done Reindexing
	if cursor != "" {
		path += "?" + url.Values{"cursor": {cursor}}.Encode()
	}
	err := c.call(ctx, request{method: http.MethodPost, path: path, repeatable: true}, nil, &done)
	return done, err
}
