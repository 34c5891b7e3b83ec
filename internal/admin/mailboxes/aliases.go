package mailboxes

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Aliases lists the aliases of the account of an address.
func (a *Accounts) Aliases(ctx context.Context, service, of string) ([]mailbox.Alias, error) {
	account, err := a.find(ctx, service, of)
	if err != nil {
		return nil, err
	}
	return a.Store.Aliases(ctx, account.ID)
}

// AddAlias gives the account of an address an alias. added is false if the account has it already. It fails with Conflict if a subscriber or another
// mailbox of the service has the address.
func (a *Accounts) AddAlias(ctx context.Context, service, of, alias string) (account mailbox.Account, made mailbox.Alias, added bool, err error) {
	if account, err = a.find(ctx, service, of); err != nil {
		return account, made, false, err
	}
	folded, err := address.Fold(alias)
	if err != nil {
		return account, made, false, err
	}
	if receives, err := a.Recipients.Receives(ctx, service, folded); err != nil {
		return account, made, false, err
	} else if !receives {
		return account, made, false, &fanfare.Error{Code: fanfare.Conflict, Message: address.Domain(folded) + " is not a mail domain of the service", Hint: "add it to mail_domains of the service first, or choose an alias in one of its domains"}
	}
	forms := address.Forms(folded) // the first is the address itself
	for _, form := range append(forms[:len(forms):len(forms)], alias) {
		row, err := a.Registry.AddressRow(ctx, service, form)
		switch {
		case fanfare.CodeOf(err) == fanfare.NotFound || fanfare.CodeOf(err) == fanfare.Invalid:
		case err != nil:
			return account, made, false, err
		case row == account.ID:
			return account, made, false, &fanfare.Error{Code: fanfare.Conflict, Message: form + " is the address of the mailbox itself", Hint: "an alias is a further address"}
		default:
			return account, made, false, &fanfare.Error{Code: fanfare.Conflict, Message: form + " is the address of a subscriber", Hint: "remove the address from the subscriber first, or choose another alias"}
		}
	}
	made, added, err = a.Store.AddAlias(ctx, account.ID, folded, forms[1:]...)
	return account, made, added, err
}

// RemoveAlias takes an alias from the account of an address.
func (a *Accounts) RemoveAlias(ctx context.Context, service, of, alias string) (mailbox.Account, error) {
	account, err := a.find(ctx, service, of)
	if err != nil {
		return account, err
	}
	folded, err := address.Fold(alias)
	if err != nil {
		return account, err
	}
	return account, a.Store.RemoveAlias(ctx, account.ID, folded)
}
