package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A MailboxAlias is a further address of a mailbox.
type MailboxAlias = wire.MailboxAlias

func aliasPath(address, alias string) string {
	return mailboxPath(address) + "/aliases/" + url.PathEscape(alias)
}

// MailboxAliases lists the aliases of a mailbox in the order of their addresses.
func (c *Client) MailboxAliases(ctx context.Context, address string) ([]MailboxAlias, error) {
	var list wire.MailboxAliasList
	err := c.call(ctx, get(mailboxPath(address)+"/aliases", nil), nil, &list)
	return list.Aliases, err
}

// AddMailboxAlias adds an alias to a mailbox. added is false if the mailbox has it already.
func (c *Client) AddMailboxAlias(ctx context.Context, address, alias string) (made MailboxAlias, added bool, err error) {
	r := request{method: http.MethodPut, path: aliasPath(address, alias), repeatable: true, status: new(int)}
	err = c.call(ctx, r, nil, &made)
	return made, *r.status == http.StatusCreated, err
}

// RemoveMailboxAlias removes an alias of a mailbox.
func (c *Client) RemoveMailboxAlias(ctx context.Context, address, alias string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: aliasPath(address, alias), repeatable: true}, nil, nil)
}
