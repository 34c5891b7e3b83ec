package mailbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// removalsKept is the number of removals in the log of an account. It is checked at every removalsChecked'th change that removes.
const (
	removalsKept    = 10_000
	removalsChecked = 64
)

// UpdateFlags makes the changes in one transaction. It returns the messages as they are afterwards, in the order of the changes, without
// those that do not exist; and the messages that UnchangedSince kept as they were. A change that has no effect takes no ModSeq.
func (s *Store) UpdateFlags(ctx context.Context, id AccountID, changes []FlagChange) (now []Message, modified []EmailID, err error) {
	keywords := make([][]string, len(changes))
	for i := range changes {
		list, err := joinKeywords(changes[i].Keywords)
		if err != nil {
			return nil, nil, err
		}
		keywords[i] = strings.Fields(list)
	}
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		now, modified = nil, nil
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if err := u.flush(); err != nil {
			return err
		}
		current := map[EmailID]*Message{}
		for i := range changes {
			var unknown []EmailID
			for _, email := range changes[i].Emails {
				if current[email] == nil {
					unknown = append(unknown, email)
				}
			}
			found, err := emailsOf(u.session, id, unknown)
			if err != nil {
				return err
			}
			for j := range found {
				current[found[j].Email] = &found[j]
			}
		}
		var updated []*Message
		var seen []Message // that were not seen before
		taken := map[EmailID]bool{}
		for i := range changes {
			c := &changes[i]
			for _, email := range c.Emails {
				m := current[email]
				if m == nil {
					continue
				}
				if c.UnchangedSince != nil && m.ModSeq > *c.UnchangedSince && !taken[email] {
					modified = append(modified, email)
					continue
				}
				before := *m
				list, err := c.apply(m, keywords[i])
				if err != nil {
					return err
				}
				m.Keywords = list
				if m.Flags != before.Flags || m.Keywords != before.Keywords {
					if before.Flags&Seen == 0 && m.Flags&Seen != 0 {
						seen = append(seen, *m)
					}
					box := a.mailbox(m.Mailbox)
					m.ModSeq = a.next()
					a.count(box, &before, -1, m.ModSeq)
					a.count(box, m, 1, m.ModSeq)
					if !taken[email] {
						updated = append(updated, m)
						taken[email] = true
					}
				}
			}
		}
		for i := range changes {
			for _, email := range changes[i].Emails {
				if m := current[email]; m != nil {
					now = append(now, *m)
					delete(current, email) // once
				}
			}
		}
		u.wrote = u.wrote || len(updated) > 0
		if err := u.update(id, updated); err != nil {
			return err
		}
		return u.markRead(id, seen)
	}})
	return now, modified, err
}

// apply changes the flags of a message and returns its keywords.
func (c *FlagChange) apply(m *Message, keywords []string) (string, error) {
	switch c.Mode {
	case SetFlags:
		m.Flags = c.Flags
		return joinKeywords(keywords)
	case AddFlags:
		m.Flags |= c.Flags
		if len(keywords) == 0 {
			return m.Keywords, nil
		}
		return joinKeywords(append(strings.Fields(m.Keywords), keywords...)) // the first spelling stays
	default:
		m.Flags &^= c.Flags
		if len(keywords) == 0 || m.Keywords == "" {
			return m.Keywords, nil
		}
		return strings.Join(slices.DeleteFunc(strings.Fields(m.Keywords), func(k string) bool {
			return slices.ContainsFunc(keywords, func(other string) bool { return strings.EqualFold(k, other) })
		}), " "), nil
	}
}

// update writes messages that exist.
func (u *unit) update(id AccountID, list []*Message) error {
	return u.session.EachOf("message_update", len(list), func(i int) []any {
		m := list[i]
		return []any{int64(m.Mailbox), int64(m.UID), int64(m.ModSeq), int64(m.Flags), m.Saved.Unix(), m.Keywords, int64(id), int64(m.Email)}
	}, func(int, store.Row) error { return nil })
}

// Copy copies messages into a mailbox, all or none. The copies have new EmailIDs and UIDs, and the same flags, keywords and Received. Messages
// that do not exist are left out: sources are the messages that were copied, in the same order as copies.
func (s *Store) Copy(ctx context.Context, id AccountID, emails []EmailID, to MailboxID) (sources, copies []Message, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		sources, copies = nil, nil
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if a.mailbox(to) == nil {
			return noMailbox()
		}
		if err := u.flush(); err != nil {
			return err
		}
		if sources, err = emailsOf(u.session, id, emails); err != nil {
			return err
		}
		var bytes int64
		uses := map[ContentID]int64{}
		for i := range sources {
			bytes += sources[i].Size
			uses[sources[i].Content]++
		}
		if err := a.checkQuota(int64(len(sources)), bytes); err != nil {
			return err
		}
		u.wrote = true
		if err := u.addUses(uses); err != nil {
			return err
		}
		for _, m := range sources {
			m.Mailbox = to
			copies = append(copies, u.insert(a, m))
		}
		return nil
	}})
	return sources, copies, err
}

// Move moves messages into a mailbox, all or none. They keep their EmailIDs and get new UIDs, also if they are in the mailbox already. sources
// are the messages as they were, in the same order as moved.
func (s *Store) Move(ctx context.Context, id AccountID, emails []EmailID, to MailboxID) (sources, moved []Message, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		sources, moved = nil, nil
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if a.mailbox(to) == nil {
			return noMailbox()
		}
		if err := u.flush(); err != nil {
			return err
		}
		if sources, err = emailsOf(u.session, id, distinct(emails)); err != nil || len(sources) == 0 {
			return err
		}
		u.wrote = true
		seq := a.next()
		if err := u.logRemoved(a, sources, false); err != nil {
			return err
		}
		updated := make([]*Message, len(sources))
		moved = slices.Clone(sources)
		for i := range moved {
			m := &moved[i]
			a.count(a.mailbox(m.Mailbox), m, -1, seq)
			box := a.mailbox(to)
			m.Mailbox, m.UID, m.ModSeq, m.Saved = to, box.UIDNext, seq, time.Unix(u.now, 0).UTC()
			box.UIDNext++
			a.count(box, m, 1, seq)
			updated[i] = m
		}
		return u.update(id, updated)
	}})
	return sources, moved, err
}

// Expunge removes messages for good and returns those that existed, with the state of the account afterwards.
func (s *Store) Expunge(ctx context.Context, id AccountID, emails []EmailID) (removed []Message, state ModSeq, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		removed = nil
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if err := u.flush(); err != nil {
			return err
		}
		if removed, err = emailsOf(u.session, id, distinct(emails)); err != nil {
			return err
		}
		u.wrote = true
		err = u.remove(a, removed, endedByRecipient)
		state = a.State
		return err
	}})
	return removed, state, err
}

// distinct returns the list without repetitions.
func distinct(emails []EmailID) []EmailID {
	seen := make(map[EmailID]bool, len(emails))
	list := make([]EmailID, 0, len(emails))
	for _, email := range emails {
		if !seen[email] {
			seen[email] = true
			list = append(list, email)
		}
	}
	return list
}

// remove removes messages, and writes them into the log of removals.
func (u *unit) remove(a *account, list []Message, why ended) error {
	if len(list) == 0 {
		return nil
	}
	if err := u.markEnded(a, list, why); err != nil {
		return err
	}
	seq := a.next()
	if err := u.logRemoved(a, list, true); err != nil {
		return err
	}
	uses := map[ContentID]int64{}
	for i := range list {
		m := &list[i]
		a.count(a.mailbox(m.Mailbox), m, -1, seq)
		a.use(-1, -m.Size)
		uses[m.Content]++
	}
	err := u.session.EachOf("message_remove", len(list), func(i int) []any { return []any{int64(a.ID), int64(list[i].Email)} }, func(int, store.Row) error { return nil })
	if err != nil {
		return err
	}
	for _, content := range sortedKeys(uses) {
		if err := u.dropUses(content, uses[content]); err != nil {
			return err
		}
	}
	if seq%removalsChecked == 0 {
		return u.shortenLog(a)
	}
	return nil
}

func (u *unit) logRemoved(a *account, list []Message, destroyed bool) error {
	seq := a.next()
	return u.session.Insert("removed_insert", len(list), func(i int, to store.Values) {
		m := &list[i]
		to.Int64(int64(a.ID))
		to.Int64(int64(seq))
		to.Int64(int64(m.Mailbox))
		to.Int64(int64(m.UID))
		to.Int64(int64(m.Email))
		to.Int64(int64(m.Thread))
		to.Int64(int64(m.Created))
		to.Int64(bit(destroyed))
	})
}

// shortenLog drops the oldest removals of an account.
func (u *unit) shortenLog(a *account) error {
	bound := ModSeq(0)
	higher := func(r store.Row) error { bound = max(bound, ModSeq(r.Int64(0))); return nil }
	if err := u.session.Each("removed_bound", higher, int64(a.ID), int64(removalsKept)); err != nil {
		return err
	}
	for _, kind := range []RecordKind{IdentityRecord, SubmissionRecord} {
		if err := u.session.Each("records_bound", higher, int64(a.ID), int64(kind), int64(removalsKept)); err != nil {
			return err
		}
	}
	if bound == 0 {
		return nil
	}
	a.Oldest, a.dirty = bound, true
	if err := u.session.Run("removed_drop", int64(a.ID), int64(bound)); err != nil {
		return err
	}
	if err := u.session.Run("removed_mailboxes_drop", int64(a.ID), int64(bound)); err != nil {
		return err
	}
	return u.session.Run("records_drop", int64(a.ID), int64(bound))
}
