package client

import (
	"context"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

type (
	// An AppPassword is an app password of a mailbox, without the password itself.
	AppPassword = wire.AppPassword
	// A NewAppPassword is an app password with what a mail program needs to log in.
	NewAppPassword = wire.NewAppPassword
)

func appPasswordsPath(address string) string {
	return "/v1/mailboxes/" + url.PathEscape(address) + "/app-passwords"
}

// CreateAppPassword creates an app password of the mailbox of a subscriber, and the mailbox if there is none. Only this response contains the password.
func (c *Client) CreateAppPassword(ctx context.Context, address, name string) (NewAppPassword, error) {
	var made NewAppPassword
	err := c.call(ctx, request{method: http.MethodPost, path: appPasswordsPath(address)}, wire.AppPasswordRequest{Name: name}, &made)
	return made, err
}

// AppPasswords lists the app passwords of a mailbox in the order of their creation.
func (c *Client) AppPasswords(ctx context.Context, address string) ([]AppPassword, error) {
	var list wire.AppPasswordList
	err := c.call(ctx, get(appPasswordsPath(address), nil), nil, &list)
	return list.AppPasswords, err
}

// RevokeAppPassword revokes an app password of a mailbox.
func (c *Client) RevokeAppPassword(ctx context.Context, address, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: appPasswordsPath(address) + "/" + url.PathEscape(id), repeatable: true}, nil, nil)
}

type (
	// A MailboxTokenRequest says which pages may use a token, and for how long.
	MailboxTokenRequest = wire.MailboxTokenRequest
	// A MailboxToken opens one mailbox by JMAP.
	MailboxToken = wire.MailboxToken
)

// CreateMailboxToken creates a token with which a page opens the mailbox of a subscriber, and the mailbox if there is none.
func (c *Client) CreateMailboxToken(ctx context.Context, address string, of MailboxTokenRequest) (MailboxToken, error) {
	var made MailboxToken
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/mailboxes/" + url.PathEscape(address) + "/tokens"}, of, &made)
	return made, err
}

// A DNSRecord is a DNS record by which mail programs find the server.
type DNSRecord = wire.DNSRecord

// MailboxDNS returns the DNS records by which mail programs find the server for the addresses of a domain.
func (c *Client) MailboxDNS(ctx context.Context, domain string) ([]DNSRecord, error) {
	var list wire.MailboxDNS
	err := c.call(ctx, get("/v1/mailbox-dns", url.Values{"domain": {domain}}), nil, &list)
	return list.Records, err
}
