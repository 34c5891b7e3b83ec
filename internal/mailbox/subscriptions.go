package mailbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A subscribed mailbox has Mailbox.Subscribed. A subscription whose mailbox was deleted or renamed in IMAP is a record with its name: "it MUST NOT
// unilaterally remove an existing mailbox name from the subscription list even if a mailbox by that name no longer exists" (RFC 9051, section
// 6.3.7). As soon as a mailbox has the name, the record is removed and the mailbox is subscribed, so a name is never in both.

// keptName is the body of a record of NameRecord.
type keptName struct {
	Name string `json:"name"`
}

// Subscriptions returns the mailboxes of an account in the order of their numbers, and the subscribed names of mailboxes that do not exist, in
// their order.
func (s *Store) Subscriptions(ctx context.Context, id AccountID) (list []Mailbox, names []string, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, _ *account) error {
		list = nil
		if err := session.Each("mailboxes", func(r store.Row) error { list = append(list, mailboxOf(r)); return nil }, int64(id)); err != nil {
			return err
		}
		kept, err := keptNames(session, id)
		names = make([]string, 0, len(kept))
		for name := range kept {
			names = append(names, name)
		}
		slices.Sort(names)
		return err
	})
	return list, names, err
}

// Unsubscribe ends the subscription of a name without a mailbox. It does nothing if there is none.
func (s *Store) Unsubscribe(ctx context.Context, id AccountID, name string) error {
	name = norm.NFC.String(name)
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		if _, err := u.account(id); err != nil {
			return err
		}
		kept, err := keptNames(u.session, id)
		if err != nil || kept[name] == nil {
			return err
		}
		return u.forgetName(kept[name])
	}})
}

// keptNames returns the records of subscribed names without a mailbox, by name.
func keptNames(session store.Session, id AccountID) (map[string]*Record, error) {
	kept := map[string]*Record{}
	err := session.Each("records", func(r store.Row) error {
		one := recordOf(id, r)
		var body keptName
		if err := json.Unmarshal([]byte(one.Body), &body); err != nil {
			return fmt.Errorf("the record %d of the account %d is damaged: %w", one.ID, id, err)
		}
		kept[body.Name] = &one
		return nil
	}, int64(id), int64(NameRecord))
	return kept, err
}

func (u *unit) forgetName(r *Record) error {
	u.wrote = true
	return u.putRecord(NameRecord, &Record{Account: r.Account, ID: r.ID, Removed: true})
}

// path is Path in the account.
func (a *account) path(id MailboxID) string {
	path := ""
	for m := a.mailbox(id); m != nil; m = a.mailbox(m.Parent) {
		if path != "" {
			path = string(Separator) + path
		}
		path = m.Name + path
	}
	return path
}

// within reports whether a name is that of a mailbox or of one in it.
func within(name, path string) bool {
	return name == path || strings.HasPrefix(name, path+string(Separator))
}

// subscribedIn returns the names of the subscribed mailboxes among a mailbox and those in it.
func (a *account) subscribedIn(id MailboxID) (names []string) {
	path := a.path(id)
	for i := range a.mailboxes {
		if m := &a.mailboxes[i]; m.Subscribed {
			if name := a.path(m.ID); within(name, path) {
				names = append(names, name)
			}
		}
	}
	return names
}

// unsubscribeIn ends the subscriptions of a mailbox and of those in it.
func (a *account) unsubscribeIn(id MailboxID) {
	path := a.path(id)
	for i := range a.mailboxes {
		if m := &a.mailboxes[i]; m.Subscribed && within(a.path(m.ID), path) {
			a.setSubscribed(m, false)
		}
	}
}

func (a *account) setSubscribed(m *Mailbox, to bool) {
	m.Subscribed = to
	m.Changed = a.next()
	m.Edited = m.Changed
	a.touch(m)
}

// checkNames checks that an account can keep more names without a mailbox.
func (u *unit) checkNames(a *account, names []string) error {
	if len(names) == 0 {
		return nil
	}
	kept, err := keptNames(u.session, a.ID)
	if err != nil {
		return err
	}
	if len(kept)+len(names) > u.o.MaxMailboxes {
		return named(ErrTooMany, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has subscriptions of %d mailboxes that do not exist, and cannot keep %d more", len(kept), len(names)), Hint: "end subscriptions of mailboxes that do not exist"})
	}
	return nil
}

// keepNames stores subscribed names whose mailboxes do not exist any more.
func (u *unit) keepNames(a *account, names []string) error {
	if len(names) == 0 {
		return nil
	}
	u.wrote = true
	var last RecordID
	err := u.session.Each("mailbox_numbers_take", func(r store.Row) error { last = RecordID(r.Int64(0)); return nil }, "record", int64(len(names)))
	if err != nil {
		return err
	}
	for i, name := range names {
		body, err := json.Marshal(keptName{name})
		if err != nil {
			return err
		}
		if err := u.putRecord(NameRecord, &Record{Account: a.ID, ID: last - RecordID(i), Body: string(body)}); err != nil {
			return err
		}
	}
	return nil
}

// joinNames subscribes the mailboxes that have the names of subscriptions without a mailbox. It leaves the mailbox said as it is, because the
// client said whether that one is subscribed; 0 stands for none.
func (u *unit) joinNames(a *account, said MailboxID) error {
	kept, err := keptNames(u.session, a.ID)
	if err != nil || len(kept) == 0 {
		return err
	}
	for i := range a.mailboxes {
		m := &a.mailboxes[i]
		r := kept[a.path(m.ID)]
		if r == nil {
			continue
		}
		if err := u.forgetName(r); err != nil {
			return err
		}
		if m.ID != said && !m.Subscribed {
			a.setSubscribed(m, true)
		}
	}
	return nil
}
