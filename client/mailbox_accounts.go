package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

type (
	// A Mailbox is the mailbox of a subscriber.
	Mailbox = wire.Mailbox
	// A Folder is a folder of a mailbox.
	Folder = wire.Folder
)

func mailboxPath(address string) string { return "/v1/mailboxes/" + url.PathEscape(address) }

// Mailboxes yields all mailboxes, without their folders. It ends at the first error, which is its last pair.
func (c *Client) Mailboxes(ctx context.Context) iter.Seq2[Mailbox, error] {
	return List[Mailbox](ctx, c, "/v1/mailboxes", "mailboxes", nil)
}

// Mailbox returns a mailbox with its folders.
func (c *Client) Mailbox(ctx context.Context, address string) (Mailbox, error) {
	var m Mailbox
	err := c.call(ctx, get(mailboxPath(address), nil), nil, &m)
	return m, err
}

// CreateMailbox creates a mailbox, and the subscriber if nobody has the address. created is false if the mailbox existed.
func (c *Client) CreateMailbox(ctx context.Context, address string) (m Mailbox, created bool, err error) {
	r := request{method: http.MethodPut, path: mailboxPath(address), repeatable: true, status: new(int)}
	err = c.call(ctx, r, nil, &m)
	return m, *r.status == http.StatusCreated, err
}

// A MailboxChange changes a mailbox; nil leaves a property as it is.
type MailboxChange struct {
	MaxBytes    *int64 `json:"max_bytes,omitempty"`    // 0: no limit
	MaxMessages *int64 `json:"max_messages,omitempty"` // 0: no limit
	Disabled    *bool  `json:"disabled,omitempty"`
}

// ChangeMailbox changes the quota of a mailbox, or disables it.
func (c *Client) ChangeMailbox(ctx context.Context, address string, change MailboxChange) (Mailbox, error) {
	var m Mailbox
	err := c.call(ctx, request{method: http.MethodPatch, path: mailboxPath(address), repeatable: true}, change, &m)
	return m, err
}

// RemoveMailbox removes a mailbox with all its messages.
func (c *Client) RemoveMailbox(ctx context.Context, address string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: mailboxPath(address), repeatable: true}, nil, nil)
}

// ExportMailbox streams a mailbox: a line with its folders, then a line for each message. Reading fails if the connection breaks; the mailbox is
// complete if the stream ends without an error. The caller closes the stream.
func (c *Client) ExportMailbox(ctx context.Context, address string) (io.ReadCloser, error) {
	return c.exportLines(ctx, get(mailboxPath(address)+"/export", nil))
}

// ImportMailbox stores the messages of lines in the format of ExportMailbox, and returns their number.
func (c *Client) ImportMailbox(ctx context.Context, address string, lines io.Reader) (int, error) {
	var in wire.MailboxImport
	err := c.call(ctx, request{method: http.MethodPost, path: mailboxPath(address) + "/import", contentType: ndjson, stream: lines}, nil, &in)
	return in.Stored, err
}
