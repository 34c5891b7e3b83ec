package mailbox

import (
	"cmp"
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

func noMessage() error {
	return named(ErrNoMessage, &fanfare.Error{Code: fanfare.NotFound, Message: "the message does not exist", Hint: "it may have been removed; read the mailbox again"})
}

// Messages returns all messages of a mailbox in the order of their UIDs, and the mailbox as it was at the same time.
func (s *Store) Messages(ctx context.Context, id AccountID, mailbox MailboxID) (list []Message, m Mailbox, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, _ *account) error {
		list = nil
		found := false
		if err := session.Each("mailbox", func(r store.Row) error { found, m = true, mailboxOf(r); return nil }, int64(id), int64(mailbox)); err != nil {
			return err
		}
		if !found {
			return noMailbox()
		}
		list = make([]Message, 0, m.Messages)
		return session.Each("messages_of", func(r store.Row) error { list = append(list, messageOf(r)); return nil }, int64(id), int64(mailbox))
	})
	return list, m, err
}

// AllMessages returns all messages of an account in the order of their EmailIDs, and the state of the account at the same time.
func (s *Store) AllMessages(ctx context.Context, id AccountID) (list []Message, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = make([]Message, 0, a.Quota.Messages), a.State
		return session.Each("messages_all", func(r store.Row) error { list = append(list, messageOf(r)); return nil }, int64(id))
	})
	return list, state, err
}

// Emails returns messages by their EmailIDs, in the same order, and the state of the account. A message that does not exist is left out.
func (s *Store) Emails(ctx context.Context, id AccountID, emails []EmailID) (list []Message, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		state = a.State
		list, err = emailsOf(session, id, emails)
		return err
	})
	return list, state, err
}

func emailsOf(session store.Session, id AccountID, emails []EmailID) (list []Message, err error) {
	list = make([]Message, 0, len(emails))
	if len(emails) == 0 {
		return list, nil
	}
	err = session.EachOf("message", len(emails), func(i int) []any { return []any{int64(id), int64(emails[i])} },
		func(_ int, r store.Row) error { list = append(list, messageOf(r)); return nil })
	return list, err
}

// Threads returns the messages of threads, in the order of the threads, and in each in the order of Received. A thread that does not exist has none.
func (s *Store) Threads(ctx context.Context, id AccountID, threads []ThreadID) (emails [][]EmailID, state ModSeq, err error) {
	type dated struct {
		email    EmailID
		received int64
	}
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		state, emails = a.State, make([][]EmailID, len(threads))
		if len(threads) == 0 {
			return nil
		}
		found := make([][]dated, len(threads))
		err := session.EachOf("messages_of_thread", len(threads), func(i int) []any { return []any{int64(id), int64(threads[i])} },
			func(i int, r store.Row) error {
				found[i] = append(found[i], dated{EmailID(r.Int64(0)), r.Int64(1)})
				return nil
			})
		for i, list := range found {
			slices.SortFunc(list, func(a, b dated) int {
				return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.email, b.email))
			})
			for _, d := range list {
				emails[i] = append(emails[i], d.email)
			}
		}
		return err
	})
	return emails, state, err
}

// Changes returns the changes of an account after since; with a mailbox, only those of its messages, and the state is that of the mailbox's
// messages. It fails with ErrOldModSeq if the log of removals does not reach back so far.
func (s *Store) Changes(ctx context.Context, id AccountID, mailbox MailboxID, since ModSeq) (c Changes, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		c = Changes{State: a.State}
		if since < a.Oldest || since > a.State {
			return named(ErrOldModSeq, &fanfare.Error{Code: fanfare.NotFound, Message: "the log of changes does not reach back to this state", Hint: "read everything again"})
		}
		if mailbox != 0 {
			found := false
			err := session.Each("mailbox", func(r store.Row) error { found, c.State = true, ModSeq(r.Int64(13)); return nil }, int64(id), int64(mailbox))
			if err == nil && !found {
				err = noMailbox()
			}
			if err != nil || since >= c.State {
				return err
			}
		}
		if since == a.State {
			return nil
		}
		err := session.Each("messages_since", func(r store.Row) error {
			if m := messageOf(r); mailbox == 0 || m.Mailbox == mailbox {
				c.Messages = append(c.Messages, m)
			}
			return nil
		}, int64(id), int64(since))
		if err != nil {
			return err
		}
		slices.SortFunc(c.Messages, func(a, b Message) int {
			return cmp.Or(cmp.Compare(a.Mailbox, b.Mailbox), cmp.Compare(a.UID, b.UID))
		})
		err = session.Each("removed_since", func(r store.Row) error {
			m := Removed{Mailbox: MailboxID(r.Int64(0)), UID: UID(r.Int64(1)), Email: EmailID(r.Int64(2)), ModSeq: ModSeq(r.Int64(3)), Destroyed: r.Int64(4) != 0, Thread: ThreadID(r.Int64(5)), Created: ModSeq(r.Int64(6))}
			if mailbox == 0 || m.Mailbox == mailbox {
				c.Removed = append(c.Removed, m)
			}
			return nil
		}, int64(id), int64(since))
		if err != nil || mailbox != 0 {
			return err
		}
		err = session.Each("mailboxes", func(r store.Row) error {
			if m := mailboxOf(r); m.Changed > since {
				c.Mailboxes = append(c.Mailboxes, m)
			}
			return nil
		}, int64(id))
		if err != nil {
			return err
		}
		return session.Each("removed_mailboxes_since", func(r store.Row) error {
			c.RemovedMailboxes = append(c.RemovedMailboxes, RemovedMailbox{MailboxID(r.Int64(0)), ModSeq(r.Int64(1))})
			return nil
		}, int64(id), int64(since))
	})
	return c, err
}
