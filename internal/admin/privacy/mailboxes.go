package privacy

import (
	"context"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/mailboxes"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/mail/submission"
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

// disableMailboxes ends the sending of people: an account that is disabled gets no record of a submission, and nothing is sent without one.
func (e *Eraser) disableMailboxes(ctx context.Context, some []*erasure) error {
	for _, one := range some {
		for _, place := range one.Places {
			if err := e.options.Mailboxes.SetDisabled(ctx, place, true); err != nil && !errors.Is(err, mailbox.ErrNoAccount) {
				return err
			}
		}
	}
	return nil
}

// cancelSubmissions cancels the messages that people have sent to other servers and that are under way.
func (e *Eraser) cancelSubmissions(ctx context.Context, some []*erasure) error {
	for _, one := range some {
		for _, place := range one.Places {
			records, err := e.options.Mailboxes.WorkOf(ctx, place, mailbox.SubmissionRecord)
			if err != nil {
				return err
			}
			for i := range records {
				if err := e.cancelSubmission(ctx, one.Service, &records[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (e *Eraser) cancelSubmission(ctx context.Context, service string, r *mailbox.Record) error {
	record, err := submission.ParseRecord(r)
	if err != nil {
		return err
	}
	if record.EventID == "" {
		return nil // it has no recipients on other servers
	}
	event := record.Event
	if event == "" { // the server was killed before it stored the reference
		ref, known := e.options.Submitted(service, record.EventID)
		if !known {
			return nil
		}
		event = ref.String()
	}
	err = e.options.Cancel(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event}, "the sender was erased")
	switch fanfare.CodeOf(err) {
	case fanfare.NotFound, fanfare.Conflict: // its history was removed, or it has ended
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel a message of an erased person: %w", err)
	}
	return nil
}
