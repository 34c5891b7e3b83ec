package mailboxes

import (
	"context"

	"fanfare.dev/fanfare/internal/mailbox"
)

// SearchIndex returns the state of the index of searches.
func (a *Accounts) SearchIndex(ctx context.Context) (mailbox.SearchIndex, error) {
	return a.Store.SearchIndex(ctx)
}

// Reindex makes the messages of the account of an address be indexed again, or those of all accounts if the address is "". It does a part of the work,
// after a content; the caller goes on with Next.
func (a *Accounts) Reindex(ctx context.Context, service, of string, after mailbox.ContentID) (account mailbox.Account, done mailbox.Reindexing, err error) {
	if of != "" {
		if account, err = a.find(ctx, service, of); err != nil {
			return account, done, err
		}
	}
	done, err = a.Store.Reindex(ctx, account.ID, after)
	return account, done, err
}
