package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

func noAccount() error {
	return named(ErrNoAccount, &fanfare.Error{Code: fanfare.NotFound, Message: "the mailbox account does not exist", Hint: "it is created by the first message for the subscriber, or by an administrator"})
}

// A namedError is an error for users with a named error in its chain.
type namedError struct{ name, user error }

func (e *namedError) Error() string { return e.user.Error() }

func (e *namedError) Unwrap() []error { return []error{e.user, e.name} }

func named(name error, user *fanfare.Error) error { return &namedError{name, user} }

// Create creates the account of an owner with its default mailboxes, and returns it. An account that exists is returned as it is. It fails with a
// fanfare.Conflict error if the address is an alias of another account.
func (s *Store) Create(ctx context.Context, of Owner) (Account, error) {
	if a, err := s.Account(ctx, of.ID); err == nil {
		return a, nil
	}
	var result Account
	err := s.queue.do(ctx, &change{create: []Owner{of}, run: func(u *unit) error {
		a, err := u.account(of.ID)
		if err != nil {
			return err
		}
		result = a.Account
		return u.checkNoAlias(&a.Owner)
	}})
	return result, err
}

// defaultMailboxes are the mailboxes of a new account, in the order of their numbers.
var defaultMailboxes = []NewMailbox{
	{Name: "INBOX", Role: Inbox, Subscribed: new(true)},
	{Name: "Drafts", Role: Drafts, Subscribed: new(true)},
	{Name: "Sent", Role: Sent, Subscribed: new(true)},
	{Name: "Archive", Role: Archive, Subscribed: new(true)},
	{Name: "Junk", Role: Junk, Subscribed: new(true)},
	{Name: "Trash", Role: Trash, Subscribed: new(true)},
}

// create stores accounts that do not exist. If another node creates one at the same time, its row is used.
func (u *unit) create(ids []AccountID, owners map[AccountID]Owner) error {
	made := make([]*account, len(ids))
	for i, id := range ids {
		a := &account{Account: Account{Owner: owners[id], CreatedAt: time.Unix(u.now, 0).UTC(), State: 1}}
		a.Quota.MaxBytes, a.Quota.MaxMessages = u.o.MaxBytes, u.o.MaxMessages
		a.nextMailbox, a.nextEmail, a.validity = 1, 1, uint32(u.now)
		made[i] = a
	}
	if err := u.session.Insert("account_insert", len(made), func(i int, to store.Values) { bindAccount(to, made[i]) }); err != nil {
		return err
	}
	if err := u.lock(ids); err != nil {
		return err
	}
	for _, id := range ids {
		a := u.accounts[id]
		if a == nil || a.nextMailbox != 1 { // another node has created it, with its mailboxes
			continue
		}
		for _, m := range defaultMailboxes {
			a.add(&m)
		}
		a.dirty, a.taken = true, 0
		for i := range a.mailboxes {
			err := u.session.Insert("mailbox_put", 1, func(_ int, to store.Values) { bindMailbox(to, id, &a.mailboxes[i]) })
			if err != nil {
				return err
			}
		}
		a.mailboxes = nil // load reads them
		clear(a.boxes)
	}
	return nil
}

// Account returns an account. It fails with ErrNoAccount.
func (s *Store) Account(ctx context.Context, id AccountID) (result Account, err error) {
	found := false
	err = s.part.Read(ctx, func(session store.Session) error {
		found = false
		return session.Each("account", func(r store.Row) error {
			found, result = true, accountOf(id, r).Account
			return nil
		}, int64(id))
	})
	if err == nil && !found {
		err = noAccount()
	}
	return result, err
}

// Open returns the account of an owner. If there is none but messages wait for it in blocks, it is created. It fails with ErrNoAccount if the owner has
// neither.
func (s *Store) Open(ctx context.Context, of Owner) (Account, error) {
	a, err := s.Account(ctx, of.ID)
	if !errors.Is(err, ErrNoAccount) {
		return a, err
	}
	waits := false
	readErr := s.queue.do(ctx, &change{run: func(u *unit) (err error) { waits, err = inBlocks(u.session, of.ID); return err }}) // the statement locks blocks
	switch {
	case readErr != nil:
		return a, readErr
	case !waits:
		return a, err
	}
	return s.Create(ctx, of)
}

// AccountsOf returns the accounts with an address, one for each service that knows the address, in the order of their numbers.
func (s *Store) AccountsOf(ctx context.Context, address string) ([]Account, error) {
	ids, err := s.accountIDs(ctx, "accounts_of", address)
	if err != nil {
		return nil, err
	}
	return s.accounts(ctx, ids)
}

// Accounts returns up to n accounts with numbers above after, in the order of their numbers.
func (s *Store) Accounts(ctx context.Context, after AccountID, n int) ([]Account, error) {
	ids, err := s.accountIDs(ctx, "accounts_after", int64(after), int64(n))
	if err != nil {
		return nil, err
	}
	return s.accounts(ctx, ids)
}

func (s *Store) accountIDs(ctx context.Context, statement string, args ...any) (ids []AccountID, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		ids = nil
		return session.Each(statement, func(r store.Row) error { ids = append(ids, AccountID(r.Int64(0))); return nil }, args...)
	})
	return ids, err
}

func (s *Store) accounts(ctx context.Context, ids []AccountID) (list []Account, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.EachOf("account", len(ids), func(i int) []any { return []any{int64(ids[i])} }, func(i int, r store.Row) error {
			list = append(list, accountOf(ids[i], r).Account)
			return nil
		})
	})
	return list, err
}

// edit changes the row of an account without a new ModSeq.
func (s *Store) edit(ctx context.Context, id AccountID, fn func(a *account)) error {
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err == nil {
			fn(a)
			a.dirty = true
		}
		return err
	}})
}

// SetQuota changes the limits of an account; 0 is no limit.
func (s *Store) SetQuota(ctx context.Context, id AccountID, maxBytes, maxMessages int64) error {
	if maxBytes < 0 || maxMessages < 0 {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "a quota must not be negative", Hint: "use 0 for no limit"}
	}
	return s.edit(ctx, id, func(a *account) {
		a.Quota.MaxBytes, a.Quota.MaxMessages = maxBytes, maxMessages
		a.next() // JMAP shows the quota
	})
}

// SetDisabled refuses or permits logins and deliveries.
func (s *Store) SetDisabled(ctx context.Context, id AccountID, disabled bool) error {
	state := ModSeq(0)
	if err := s.edit(ctx, id, func(a *account) { a.Disabled, state = disabled, a.State }); err != nil {
		return err
	}
	s.accessChanged(id, state)
	return nil
}

// Scrub overwrites all remains of names, in lower case, outside of stored rows, as store.Part.Scrub says.
func (s *Store) Scrub(ctx context.Context, names [][]byte) error { return s.part.Scrub(ctx, names) }

// Remove removes an account with everything in it, and the contents that no other account has. The removed data are overwritten
// as store.Part.Erase says. An account that does not exist is removed already.
func (s *Store) Remove(ctx context.Context, id AccountID) error {
	err := s.part.Erase(ctx, func(session store.Session) error {
		a := &account{Account: Account{Owner: Owner{ID: id}}}
		if err := session.Each("account_lock", func(r store.Row) error { a = accountOf(id, r); return nil }, int64(id)); err != nil {
			return err
		}
		if err := leaveBlocks(session, a); err != nil {
			return err
		}
		uses := map[ContentID]int64{}
		count := func(column int) func(store.Row) error {
			return func(r store.Row) error { uses[ContentID(r.Int64(column))]++; return nil }
		}
		if err := session.Each("messages_all", count(10), int64(id)); err != nil {
			return err
		}
		if err := session.Each("uploads_of", count(0), int64(id)); err != nil {
			return err
		}
		for _, statement := range []string{"credentials_clear", "mailboxes_clear", "messages_clear", "removed_clear", "removed_mailboxes_clear", "threads_clear", "uploads_clear", "records_clear", "aliases_clear", "inbox_messages_clear", "account_remove"} {
			if err := session.Run(statement, int64(id)); err != nil {
				return err
			}
		}
		for _, content := range sortedKeys(uses) {
			if err := session.Run("content_drop_uses", uses[content], uses[content], s.now(), int64(content)); err != nil {
				return err
			}
			if err := removeContent(session, content, s.now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove account %d: %w", id, err)
	}
	s.accessChanged(id, 0)
	return nil
}
