package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

const (
	maxNameBytes = 255
	maxDepth     = 20 // mailboxes in mailboxes
)

// Mailboxes returns the mailboxes of an account in the order of their numbers.
func (s *Store) Mailboxes(ctx context.Context, id AccountID) ([]Mailbox, error) {
	list, _, err := s.mailboxes(ctx, id)
	return list, err
}

// MailboxesAt is Mailboxes with the state of the account at the same time.
func (s *Store) MailboxesAt(ctx context.Context, id AccountID) ([]Mailbox, ModSeq, error) {
	return s.mailboxes(ctx, id)
}

func (s *Store) mailboxes(ctx context.Context, id AccountID) (list []Mailbox, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = nil, a.State
		return session.Each("mailboxes", func(r store.Row) error { list = append(list, mailboxOf(r)); return nil }, int64(id))
	})
	return list, state, err
}

// snapshot runs fn on one state of the database, with the account. Messages that the account has in blocks become rows before. It fails with
// ErrNoAccount.
func (s *Store) snapshot(ctx context.Context, id AccountID, fn func(session store.Session, a *account) error) error {
	for {
		err := s.snapshotOfRows(ctx, id, fn)
		if !errors.Is(err, errBlocks) {
			return err
		}
		if err := s.merge(ctx, id); err != nil {
			return err
		}
	}
}

// snapshotOfRows is snapshot, and fails with errBlocks if there are newer blocks.
func (s *Store) snapshotOfRows(ctx context.Context, id AccountID, fn func(session store.Session, a *account) error) error {
	return s.part.Snapshot(ctx, func(session store.Session) error {
		var a *account
		if err := session.Each("account", func(r store.Row) error { a = accountOf(id, r); return nil }, int64(id)); err != nil {
			return err
		}
		if a == nil {
			return noAccount()
		}
		if last, err := lastBlock(session); err != nil || a.merged < last {
			return cmp.Or(err, errBlocks)
		}
		return fn(session, a)
	})
}

// Path returns the name of a mailbox with those of its parents, joined by Separator. list has all mailboxes of the account.
func Path(list []Mailbox, id MailboxID) string {
	path := ""
	for range maxDepth + 1 {
		i := slices.IndexFunc(list, func(m Mailbox) bool { return m.ID == id })
		if i < 0 {
			break
		}
		if path != "" {
			path = string(Separator) + path
		}
		path = list[i].Name + path
		id = list[i].Parent
	}
	return path
}

// Mailbox returns one mailbox. It fails with ErrNoMailbox.
func (s *Store) Mailbox(ctx context.Context, id AccountID, mailbox MailboxID) (m Mailbox, err error) {
	found := false
	err = s.snapshot(ctx, id, func(session store.Session, _ *account) error {
		found = false
		return session.Each("mailbox", func(r store.Row) error { found, m = true, mailboxOf(r); return nil }, int64(id), int64(mailbox))
	})
	if err == nil && !found {
		err = noMailbox()
	}
	return m, err
}

func noMailbox() error {
	return named(ErrNoMailbox, &fanfare.Error{Code: fanfare.NotFound, Message: "the mailbox does not exist", Hint: "list the mailboxes of the account"})
}

func fixed(what string) error {
	return named(ErrFixed, &fanfare.Error{Code: fanfare.Conflict, Message: what, Hint: "use another mailbox"})
}

// CreateMailbox creates a mailbox. It fails with ErrExists, ErrNoMailbox (the parent), ErrBadName or ErrTooMany.
func (s *Store) CreateMailbox(ctx context.Context, id AccountID, m NewMailbox) (result Mailbox, err error) {
	m.Name = norm.NFC.String(m.Name)
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if err := a.checkPlace(0, m.Parent, m.Name); err != nil {
			return err
		}
		if len(a.mailboxes) >= u.o.MaxMailboxes {
			return named(ErrTooMany, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has %d mailboxes, which is the maximum", len(a.mailboxes)), Hint: "remove a mailbox first"})
		}
		if err := a.checkRole(0, m.Role); err != nil {
			return err
		}
		made := a.add(&m).ID
		said := MailboxID(0)
		if m.Subscribed != nil {
			said = made
		}
		if err := u.joinNames(a, said); err != nil {
			return err
		}
		result = *a.mailbox(made)
		return nil
	}})
	return result, err
}

// add adds a mailbox to the account. The caller has checked it.
func (a *account) add(m *NewMailbox) *Mailbox {
	seq := a.next()
	a.validity++
	a.mailboxes = append(a.mailboxes, Mailbox{ID: a.nextMailbox, Parent: m.Parent, Name: m.Name, Role: m.Role, SortOrder: m.SortOrder, Subscribed: m.Subscribed != nil && *m.Subscribed,
		UIDValidity: a.validity, UIDNext: 1, RecentFrom: 1, HighestMod: seq, Created: seq, Changed: seq, Edited: seq})
	a.nextMailbox++
	created := &a.mailboxes[len(a.mailboxes)-1]
	a.touch(created)
	return created
}

// checkPlace checks the name and the parent of a mailbox; of is 0 for a new one.
func (a *account) checkPlace(of, parent MailboxID, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if parent == 0 && strings.EqualFold(name, "INBOX") {
		return exists(name)
	}
	depth := 0
	for at := parent; at != 0; depth++ {
		p := a.mailbox(at)
		switch {
		case p == nil:
			return noMailbox()
		case at == of:
			return badName("a mailbox cannot be inside of itself")
		case depth >= maxDepth:
			return badName(fmt.Sprintf("mailboxes cannot be nested more than %d deep", maxDepth))
		}
		at = p.Parent
	}
	if slices.ContainsFunc(a.mailboxes, func(m Mailbox) bool { return m.ID != of && m.Parent == parent && m.Name == name }) {
		return exists(name)
	}
	return nil
}

func (a *account) checkRole(of MailboxID, role Role) error {
	switch role {
	case NoRole:
		return nil
	case Inbox, Drafts, Sent, Trash, Junk, Archive:
	default:
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the role %q does not exist", string(role)), Hint: "use drafts, sent, trash, junk or archive"}
	}
	if slices.ContainsFunc(a.mailboxes, func(m Mailbox) bool { return m.ID != of && m.Role == role }) {
		return named(ErrExists, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("another mailbox has the role %s", role), Hint: "remove the role from the other mailbox first"})
	}
	return nil
}

func exists(name string) error {
	return named(ErrExists, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the mailbox %q exists already", name), Hint: "use another name"})
}

func badName(why string) error {
	return named(ErrBadName, &fanfare.Error{Code: fanfare.Invalid, Message: why, Hint: "use another name"})
}

// checkName refuses names that a protocol cannot show.
func checkName(name string) error {
	switch {
	case name == "":
		return badName("the name of a mailbox must not be empty")
	case len(name) > maxNameBytes:
		return badName(fmt.Sprintf("the name of a mailbox must not be longer than %d bytes", maxNameBytes))
	case !utf8.ValidString(name):
		return badName("the name of a mailbox must be UTF-8")
	case strings.ContainsRune(name, Separator):
		return badName(fmt.Sprintf("the name of a mailbox must not contain %q", Separator))
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return badName("the name of a mailbox must not contain control characters")
	}
	return nil
}

// UpdateMailbox changes properties of a mailbox. The inbox keeps its name, parent and role (ErrFixed).
func (s *Store) UpdateMailbox(ctx context.Context, id AccountID, c MailboxChange) (result Mailbox, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		m := a.mailbox(c.ID)
		if m == nil {
			return noMailbox()
		}
		now := *m
		if c.Name != nil {
			now.Name = norm.NFC.String(*c.Name)
		}
		if c.Parent != nil {
			now.Parent = *c.Parent
		}
		if c.Role != nil {
			now.Role = *c.Role
		}
		if c.SortOrder != nil {
			now.SortOrder = *c.SortOrder
		}
		if c.Subscribed != nil {
			now.Subscribed = *c.Subscribed
		}
		if now == *m {
			result = now
			return nil
		}
		if m.ID == InboxID && (now.Name != m.Name || now.Parent != m.Parent || now.Role != m.Role) {
			return fixed("the inbox keeps its name, its place and its role")
		}
		if now.Name != m.Name || now.Parent != m.Parent {
			if err := a.checkPlace(m.ID, now.Parent, now.Name); err != nil {
				return err
			}
		}
		if now.Role != m.Role {
			if now.Role == Inbox {
				return fixed("only the inbox has the role inbox")
			}
			if err := a.checkRole(m.ID, now.Role); err != nil {
				return err
			}
		}
		renamed := now.Name != m.Name || now.Parent != m.Parent
		var kept []string
		if renamed && c.KeepNames {
			kept = a.subscribedIn(m.ID)
			if err := u.checkNames(a, kept); err != nil {
				return err
			}
			a.unsubscribeIn(m.ID)
			now.Subscribed = c.Subscribed != nil && *c.Subscribed
		}
		now.Changed = a.next()
		now.Edited = now.Changed
		*m = now
		a.touch(m)
		if renamed {
			if err := u.keepNames(a, kept); err != nil {
				return err
			}
			said := MailboxID(0)
			if c.Subscribed != nil {
				said = m.ID
			}
			if err := u.joinNames(a, said); err != nil {
				return err
			}
		}
		result = *m
		return nil
	}})
	return result, err
}

// RemoveMailbox removes a mailbox. It fails with ErrHasChild, with ErrFixed for the inbox, with ErrNotEmpty if the mailbox has messages that are
// not to be removed, and with ErrTooMany if the account cannot keep one more name.
func (s *Store) RemoveMailbox(ctx context.Context, id AccountID, r MailboxRemoval) error {
	mailbox := r.ID
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		m := a.mailbox(mailbox)
		switch {
		case m == nil:
			return noMailbox()
		case mailbox == InboxID:
			return fixed("the inbox cannot be removed")
		case slices.ContainsFunc(a.mailboxes, func(other Mailbox) bool { return other.Parent == mailbox }):
			return named(ErrHasChild, &fanfare.Error{Code: fanfare.Conflict, Message: "the mailbox has mailboxes in it", Hint: "remove them first"})
		case m.Messages > 0 && !r.WithMessages:
			return named(ErrNotEmpty, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the mailbox has %d messages in it", m.Messages), Hint: "move or remove the messages first"})
		}
		var kept []string
		if r.KeepName && m.Subscribed {
			kept = []string{a.path(mailbox)}
		}
		if err := u.checkNames(a, kept); err != nil {
			return err
		}
		if err := u.flush(); err != nil {
			return err
		}
		u.wrote = true
		if err := u.keepNames(a, kept); err != nil {
			return err
		}
		var emails []Message
		if err := u.session.Each("messages_of", func(r store.Row) error { emails = append(emails, messageOf(r)); return nil }, int64(id), int64(mailbox)); err != nil {
			return err
		}
		if err := u.remove(a, emails, endedByRecipient); err != nil {
			return err
		}
		seq := a.next()
		delete(a.boxes, mailbox)
		a.mailboxes = slices.DeleteFunc(a.mailboxes, func(other Mailbox) bool { return other.ID == mailbox })
		if err := u.session.Run("mailbox_remove", int64(id), int64(mailbox)); err != nil {
			return err
		}
		return u.session.Insert("removed_mailbox_insert", 1, func(_ int, to store.Values) {
			to.Int64(int64(id))
			to.Int64(int64(seq))
			to.Int64(int64(mailbox))
		})
	}})
}

// ClaimRecent returns the UID from which messages are new to every session so far, and makes the messages that exist now old
// for later sessions (RFC 3501, section 2.3.2, \Recent).
func (s *Store) ClaimRecent(ctx context.Context, id AccountID, mailbox MailboxID) (from UID, err error) {
	m, err := s.Mailbox(ctx, id, mailbox)
	if err != nil || m.RecentFrom == m.UIDNext {
		return m.RecentFrom, err
	}
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		m := a.mailbox(mailbox)
		if m == nil {
			return noMailbox()
		}
		from = m.RecentFrom
		if m.RecentFrom != m.UIDNext {
			m.RecentFrom = m.UIDNext
			a.touch(m)
		}
		return nil
	}})
	return from, err
}
