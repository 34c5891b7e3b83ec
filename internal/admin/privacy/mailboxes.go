package privacy

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/mailboxes"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
)

// mailboxes visits the mailboxes of the person, each followed by its messages.
func (e *Exporter) mailboxes(ctx context.Context, service string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	var owners []mailbox.Owner
	err := e.Registry.Subscribers(ctx, places, func(r *people.SubscriberRow) error {
		owners = append(owners, mailbox.Owner{ID: r.Place, Service: service, Address: r.Address})
		return nil
	})
	if err != nil {
		return err
	}
	for _, of := range owners {
		open := e.Mailboxes.Open
		if of.Address == "" { // the address was removed; its account is not created again
			open = func(ctx context.Context, of mailbox.Owner) (mailbox.Account, error) {
				return e.Mailboxes.Account(ctx, of.ID)
			}
		}
		account, err := open(ctx, of)
		if errors.Is(err, mailbox.ErrNoAccount) {
			continue
		}
		if err == nil {
			err = mailboxes.ExportAccount(ctx, e.Mailboxes, &account, visit)
		}
		if err != nil && !errors.Is(err, mailbox.ErrNoAccount) { // it may be removed at the same time
			return err
		}
	}
	return nil
}
