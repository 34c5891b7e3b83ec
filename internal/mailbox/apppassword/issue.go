package apppassword

import (
	"context"
	"unicode"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mailbox"
)

// An Issuer creates, lists and revokes app passwords.
type Issuer struct {
	Store *mailbox.Store
	// Owner returns the subscriber of a service with an address, whose account is created with the first app password.
	Owner func(ctx context.Context, service, address string) (mailbox.Owner, error)
}

const maxNameBytes = 128

// Create creates an app password of the account with an address, and the account if the subscriber has none.
func (i *Issuer) Create(ctx context.Context, service, address, name string) (mailbox.Account, mailbox.Credential, string, error) {
	var c mailbox.Credential
	if len(name) > maxNameBytes || !utf8.ValidString(name) || containsControl(name) {
		return mailbox.Account{}, c, "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/name", Message: "the name is not valid", Hint: "use up to 128 bytes without control characters, such as phone"}
	}
	a, err := i.account(ctx, service, address)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		var owner mailbox.Owner
		if owner, err = i.Owner(ctx, service, address); err == nil {
			a, err = i.Store.Create(ctx, owner)
		}
	}
	if err != nil {
		return a, c, "", err
	}
	others, err := i.Store.Credentials(ctx, a.ID)
	if err != nil {
		return a, c, "", err
	}
	password := Generate()
	c.Name = name
	if c.Verifier, err = Verifier(a.Address, password, others); err != nil {
		return a, c, "", err
	}
	err = i.Store.AddCredential(ctx, a.ID, &c)
	return a, c, password, err
}

func containsControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}

// List lists the app passwords of the account with an address.
func (i *Issuer) List(ctx context.Context, service, address string) ([]mailbox.Credential, error) {
	a, err := i.account(ctx, service, address)
	if err != nil {
		return nil, err
	}
	return i.Store.Credentials(ctx, a.ID)
}

// Revoke revokes an app password of the account with an address. Programs that are logged in with it stay logged in.
func (i *Issuer) Revoke(ctx context.Context, service, address string, id int64) (mailbox.Account, error) {
	a, err := i.account(ctx, service, address)
	if err != nil {
		return a, err
	}
	return a, i.Store.RemoveCredential(ctx, a.ID, id)
}

// account returns the account of a service with an address.
func (i *Issuer) account(ctx context.Context, service, of string) (mailbox.Account, error) {
	normal, err := address.Parse(of)
	if err != nil {
		return mailbox.Account{}, err
	}
	accounts, err := i.Store.AccountsOf(ctx, normal)
	if err != nil {
		return mailbox.Account{}, err
	}
	for _, a := range accounts {
		if a.Service == service {
			return a, nil
		}
	}
	return mailbox.Account{}, &fanfare.Error{Code: fanfare.NotFound, Message: "nobody has a mailbox with this address in service " + service,
		Hint: "a mailbox is created by the first message to it, or by its first app password"}
}
