package submission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
)

// ErrRecipients is the error of Send for recipients that cannot get the message.
type ErrRecipients struct {
	Addresses []string
	Text      string
}

func (e *ErrRecipients) Error() string { return e.Text }

// Send sends a message, which Complete has checked, to mailboxes of this server and to other servers, and stores the record, which is durable when it
// returns. from is an address of the account, the envelope's. client is what the record keeps for the client. The error is a *Refusal or an *ErrRecipients if the sender made a mistake; nothing was
// sent then.
func (s *Submitter) Send(ctx context.Context, a *mailbox.Account, from string, message []byte, to []string, client json.RawMessage) (id mailbox.RecordID, record *Record, err error) {
	record = &Record{Client: client}
	accounts := map[string][]mailbox.Account{}
	wrong := &ErrRecipients{}
	refuse := func(to, format string, args ...any) {
		wrong.Addresses = append(wrong.Addresses, to)
		if wrong.Text == "" {
			wrong.Text = fmt.Sprintf(format, args...)
		}
	}
	for _, one := range to {
		normal, err := address.Parse(one)
		if err != nil {
			refuse(one, "%v", err)
			continue
		}
		list, err := s.o.Recipients.Find(ctx, normal)
		switch {
		case errors.Is(err, recipients.ErrUnknown):
			refuse(one, "nobody has a mailbox with the address %s", normal)
		case err != nil && !errors.Is(err, recipients.ErrNotHere):
			return 0, nil, err
		case len(list) == 0 && !s.Permits(a, from):
			refuse(one, "nobody has a mailbox with the address %s here, and the account may not send mail to other servers", normal)
		default:
			accounts[normal] = list
			record.Recipients = append(record.Recipients, Recipient{Address: normal, Outside: len(list) == 0, Delivered: Queued})
		}
	}
	if len(wrong.Addresses) > 0 {
		return 0, nil, wrong
	}
	now := s.o.Clock.Now()
	if err := s.Limiter.Take(now, a.ID, len(record.Recipients)); err != nil {
		return 0, nil, err
	}
	message = slices.Concat([]byte("Received: by "+s.o.Name+" with JMAP;\r\n "+now.Format(time.RFC1123Z)+"\r\n"), message)
	if id, err = s.Relayed(ctx, a, from, message, record); err != nil {
		return 0, nil, err
	}
	s.deliver(context.WithoutCancel(ctx), from, message, record, accounts)
	_, err = s.o.Store.EditRecord(context.WithoutCancel(ctx), a.ID, mailbox.SubmissionRecord, id, record.mergeInto)
	return id, record, err
}

// deliver stores a message in the mailboxes of the recipients that are not outside, each once.
func (s *Submitter) deliver(ctx context.Context, from string, message []byte, record *Record, accounts map[string][]mailbox.Account) {
	var owners []mailbox.Owner
	place := map[mailbox.AccountID]int{}
	for i := range record.Recipients {
		for _, account := range accounts[record.Recipients[i].Address] {
			if _, ok := place[account.ID]; !ok {
				place[account.ID] = len(owners)
				owners = append(owners, account.Owner)
			}
		}
	}
	if len(owners) == 0 {
		return
	}
	content := slices.Concat([]byte("Return-Path: <"+from+">\r\n"), message)
	errs := s.o.Store.Deliver(ctx, mailbox.Delivery{Content: content, Received: s.o.Clock.Now(), To: owners, Existing: true})
	for i := range record.Recipients {
		to := &record.Recipients[i]
		if to.Outside {
			continue
		}
		to.Delivered = No
		for _, account := range accounts[to.Address] {
			switch err := errs[place[account.ID]]; {
			case err == nil:
				to.Delivered, to.Reply, to.Reported = Yes, "250 2.6.0 delivered", true
			case to.Delivered == Yes:
			default:
				to.Reply = s.replyTo(account.ID, err)
			}
		}
	}
}

// replyTo describes the error of a delivery as a reply of SMTP.
func (s *Submitter) replyTo(id mailbox.AccountID, err error) string {
	switch {
	case errors.Is(err, mailbox.ErrOverQuota):
		return "552 5.2.2 the mailbox is full"
	case errors.Is(err, mailbox.ErrTooLarge):
		return "552 5.2.3 the message is larger than the mailbox accepts"
	case errors.Is(err, mailbox.ErrNoAccount), fanfare.CodeOf(err) == fanfare.NotFound:
		return "550 5.1.1 nobody has a mailbox with this address"
	case fanfare.CodeOf(err) == fanfare.Forbidden:
		return "550 5.2.1 the mailbox is disabled"
	}
	s.o.Logger.Warn("cannot store a submitted message in a mailbox", "account", id, "error", err)
	return "554 5.3.0 the message cannot be stored"
}
