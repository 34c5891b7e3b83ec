package mailboxes

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
)

// Registry knows the subscribers.
type Registry interface {
	// AddressRow returns the row of an address. It fails with NotFound.
	AddressRow(ctx context.Context, service, address string) (fanfare.RowID, error)
	// FindDirectRecipients sets the rows of addresses, and CreateDirectRecipients creates subscribers for those that have none.
	FindDirectRecipients(ctx context.Context, service string, channel *catalog.Channel, all []people.DirectRecipient) error
	CreateDirectRecipients(ctx context.Context, service string, channel *catalog.Channel, all []people.DirectRecipient) error
}

// Accounts manages the accounts of mailboxes.
type Accounts struct {
	Store      *mailbox.Store
	Registry   Registry
	Recipients *recipients.Directory // the mail domains of services
}

// Page lists accounts of a service, or of all ("") in the order of their numbers, after a number. next is 0 at the end. A page can have fewer
// accounts than limit even if more follow.
func (a *Accounts) Page(ctx context.Context, service string, after fanfare.RowID, limit int) (page []mailbox.Account, next fanfare.RowID, err error) {
	const reads = 20 // of one page
	for range reads {
		list, err := a.Store.Accounts(ctx, after, limit)
		if err != nil {
			return nil, 0, err
		}
		for i := range list {
			if len(page) == limit {
				return page, after, nil
			}
			after = list[i].ID
			if service == "" || list[i].Service == service {
				page = append(page, list[i])
			}
		}
		if len(list) < limit {
			return page, 0, nil
		}
	}
	return page, after, nil
}

// Account returns the account of an address with its folders.
func (a *Accounts) Account(ctx context.Context, service, of string) (mailbox.Account, []mailbox.Mailbox, error) {
	account, err := a.find(ctx, service, of)
	if err != nil {
		return account, nil, err
	}
	folders, err := a.Store.Mailboxes(ctx, account.ID)
	if err == nil {
		account, err = a.Store.Account(ctx, account.ID) // with the messages that waited in blocks
	}
	return account, folders, err
}

// find returns the account of an address. It fails with NotFound.
func (a *Accounts) find(ctx context.Context, service, of string) (mailbox.Account, error) {
	normal, err := address.Parse(of)
	if err != nil {
		return mailbox.Account{}, err
	}
	accounts, err := a.Store.AccountsOf(ctx, normal)
	if err != nil {
		return mailbox.Account{}, err
	}
	for _, account := range accounts {
		if account.Service == service {
			return account, nil
		}
	}
	row, err := a.Registry.AddressRow(ctx, service, normal)
	if err == nil { // messages may wait for the first login
		var account mailbox.Account
		account, err = a.Store.Open(ctx, mailbox.Owner{ID: row, Service: service, Address: normal})
		if !errors.Is(err, mailbox.ErrNoAccount) {
			return account, err
		}
	} else if fanfare.CodeOf(err) != fanfare.NotFound {
		return mailbox.Account{}, err
	}
	return mailbox.Account{}, &fanfare.Error{Code: fanfare.NotFound, Message: "nobody has a mailbox with the address " + normal + " in service " + service,
		Hint: "the first message to it creates the mailbox, and so does `fanfare mailbox create`"}
}

// Create creates the account of an address, and the subscriber if nobody has the address. An account that exists is returned as it is.
func (a *Accounts) Create(ctx context.Context, service, of string) (account mailbox.Account, created bool, err error) {
	account, err = a.find(ctx, service, of)
	if fanfare.CodeOf(err) != fanfare.NotFound {
		return account, false, err
	}
	channel := &catalog.Channel{Service: service, ChannelSettings: catalog.ChannelSettings{Driver: "inbox"}} // for the kind of the address
	owner := []people.DirectRecipient{{Address: of}}
	if err := a.Registry.FindDirectRecipients(ctx, service, channel, owner); err != nil {
		return account, false, err
	}
	if owner[0].Err == nil && owner[0].Place == 0 {
		if err := a.Registry.CreateDirectRecipients(ctx, service, channel, owner); err != nil {
			return account, false, err
		}
	}
	if err := owner[0].Err; err != nil {
		if user, ok := errors.AsType[*fanfare.Error](err); ok {
			shown := *user
			shown.Pointer = "" // the address is in the path
			err = &shown
		}
		return account, false, err
	}
	account, err = a.Store.Create(ctx, mailbox.Owner{ID: owner[0].Place, Service: service, Address: owner[0].Address})
	return account, err == nil, err
}

// Change changes the account of an address, and returns it before and after the change. nil leaves a property as it is; a limit of 0 is none.
func (a *Accounts) Change(ctx context.Context, service, of string, maxBytes, maxMessages *int64, disabled *bool) (before, after mailbox.Account, err error) {
	before, err = a.find(ctx, service, of)
	if err != nil {
		return before, before, err
	}
	q := before.Quota
	if maxBytes != nil {
		q.MaxBytes = *maxBytes
	}
	if maxMessages != nil {
		q.MaxMessages = *maxMessages
	}
	if q != before.Quota {
		if err := a.Store.SetQuota(ctx, before.ID, q.MaxBytes, q.MaxMessages); err != nil {
			return before, before, err
		}
	}
	if disabled != nil && *disabled != before.Disabled {
		if err := a.Store.SetDisabled(ctx, before.ID, *disabled); err != nil {
			return before, before, err
		}
	}
	after, err = a.Store.Account(ctx, before.ID)
	return before, after, err
}

// Remove removes the account of an address with all messages.
func (a *Accounts) Remove(ctx context.Context, service, of string) (mailbox.Account, error) {
	account, err := a.find(ctx, service, of)
	if err == nil {
		err = a.Store.Remove(ctx, account.ID)
	}
	return account, err
}
