package token

import (
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mailbox"
)

// An Issuer makes tokens for the mailboxes of subscribers.
type Issuer struct {
	Key   *Key
	Store *mailbox.Store
	Clock clock.Clock
	// Owner returns the subscriber of a service with an address, whose account is created with the first token.
	Owner func(ctx context.Context, service, address string) (mailbox.Owner, error)
}

// Issue makes a token for the mailbox of a service with an address, and the mailbox if the subscriber has none. A lifetime of 0 is
// DefaultLifetime.
func (i *Issuer) Issue(ctx context.Context, service, of string, origins []string, lifetime time.Duration) (a mailbox.Account, text string, until time.Time, err error) {
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	now := i.Clock.Now().UTC().Truncate(time.Second)
	until = now.Add(lifetime)
	if a, err = i.account(ctx, service, of); err != nil {
		return a, "", until, err
	}
	text, err = i.Key.Mint(Claims{Account: a.ID, Service: service, Origins: origins, Until: until}, now)
	return a, text, until, err
}

func (i *Issuer) account(ctx context.Context, service, of string) (mailbox.Account, error) {
	normal, err := address.Parse(of)
	if err != nil {
		return mailbox.Account{}, err
	}
	accounts, err := i.Store.AccountsOf(ctx, normal)
	if err != nil {
		return mailbox.Account{}, err
	}
	if at := slices.IndexFunc(accounts, func(a mailbox.Account) bool { return a.Service == service }); at >= 0 {
		if accounts[at].Disabled {
			return accounts[at], &fanfare.Error{Code: fanfare.Forbidden, Message: "the mailbox is disabled", Hint: "an administrator can enable it"}
		}
		return accounts[at], nil
	}
	owner, err := i.Owner(ctx, service, normal)
	if err != nil {
		return mailbox.Account{}, err
	}
	return i.Store.Create(ctx, owner)
}
