package mailbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

const (
	maxKeywords     = 100 // of one message
	maxKeywordBytes = 255
)

// Append adds messages to mailboxes of an account, all or none, and returns them in the same order.
func (s *Store) Append(ctx context.Context, id AccountID, messages []NewMessage) (added []Message, err error) {
	c := &change{accounts: []AccountID{id}}
	contents := make([]*newContent, len(messages))
	keywords := make([]string, len(messages))
	for i := range messages {
		m := &messages[i]
		if keywords[i], err = joinKeywords(m.Keywords); err != nil {
			return nil, err
		}
		data := m.Content
		if data == nil {
			if data, err = s.Uploaded(ctx, id, m.Upload); err != nil {
				return nil, err
			}
		}
		if err := s.checkSize(data); err != nil {
			return nil, err
		}
		contents[i] = s.newContent(data, id)
	}
	c.contents = contents
	c.run = func(u *unit) error {
		added = added[:0]
		a, err := u.account(id)
		if err != nil {
			return err
		}
		var bytes int64
		for i := range messages {
			if a.mailbox(messages[i].Mailbox) == nil {
				return noMailbox()
			}
			bytes += int64(len(contents[i].data))
		}
		if err := a.checkQuota(int64(len(messages)), bytes); err != nil {
			return err
		}
		for i := range messages {
			m := &messages[i]
			added = append(added, u.add(a, contents[i], Message{Mailbox: m.Mailbox, Flags: m.Flags, Keywords: keywords[i], Received: m.Received}))
		}
		return nil
	}
	if err := s.queue.do(ctx, c); err != nil {
		return nil, err
	}
	return added, nil
}

func (s *Store) checkSize(data []byte) error {
	if int64(len(data)) > s.o.MaxMessageBytes {
		return named(ErrTooLarge, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the message has %d bytes; the limit is %d", len(data), s.o.MaxMessageBytes), Hint: "send a smaller message"})
	}
	return nil
}

// checkQuota refuses messages that would exceed the quota.
func (a *account) checkQuota(messages, bytes int64) error {
	q := &a.Quota
	switch {
	case q.MaxBytes > 0 && q.Bytes+bytes > q.MaxBytes:
		return named(ErrOverQuota, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has %d of %d bytes, and the message has %d", q.Bytes, q.MaxBytes, bytes), Hint: "remove messages first"})
	case q.MaxMessages > 0 && q.Messages+messages > q.MaxMessages:
		return named(ErrOverQuota, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has %d of %d messages", q.Messages, q.MaxMessages), Hint: "remove messages first"})
	}
	return nil
}

// add adds a message whose content is stored. m has the mailbox, flags, keywords and Received.
func (u *unit) add(a *account, content *newContent, m Message) Message {
	m.Size, m.Content, m.Thread = content.size, content.id, 0
	for _, hash := range content.threads {
		if m.Thread = a.threads[hash]; m.Thread != 0 {
			break
		}
	}
	if m.Thread == 0 {
		m.Thread = a.nextEmail
	}
	for _, hash := range content.threads {
		if a.threads[hash] == 0 {
			a.threads[hash] = m.Thread
			a.newThread = append(a.newThread, hash)
			a.dirty = true
		}
	}
	return u.insert(a, m)
}

// insert adds a message with new numbers.
func (u *unit) insert(a *account, m Message) Message {
	box := a.mailbox(m.Mailbox)
	seq := a.next()
	m.Email, m.UID, m.ModSeq, m.Created = a.nextEmail, box.UIDNext, seq, seq
	a.nextEmail++
	box.UIDNext++
	m.Saved = time.Unix(u.now, 0).UTC()
	if m.Received.IsZero() {
		m.Received = m.Saved
	}
	m.Received = m.Received.UTC().Truncate(time.Second)
	a.count(box, &m, 1, seq)
	a.use(1, m.Size)
	u.added = append(u.added, addedMessage{a.ID, m})
	return m
}

// Deliver adds a message to the inbox of each account, and returns an error or nil for each. The content is stored once, and an account is
// created if it does not exist, unless d.Existing is set.
func (s *Store) Deliver(ctx context.Context, d Delivery) []error {
	errs := make([]error, len(d.To))
	fail := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	if err := s.checkSize(d.Content); err != nil {
		return fail(err)
	}
	ids := make([]AccountID, len(d.To))
	for i := range d.To {
		ids[i] = d.To[i].ID
	}
	content := s.newContent(d.Content, ids...)
	c := &change{contents: []*newContent{content}}
	if d.Existing {
		c.accounts = ids
	} else {
		c.create = d.To
	}
	c.run = func(u *unit) error {
		clear(errs)
		failed := int64(0)
		for i, id := range ids {
			errs[i] = func() error {
				a, err := u.account(id)
				if err != nil {
					return err
				}
				if err := a.enabled(); err != nil {
					return err
				}
				if err := a.checkQuota(1, int64(len(d.Content))); err != nil {
					return err
				}
				u.add(a, content, Message{Mailbox: InboxID, Received: d.Received})
				return nil
			}()
			if errs[i] != nil {
				failed++
			}
		}
		if failed > 0 {
			return u.dropUses(content.id, failed)
		}
		return nil
	}
	if err := s.queue.do(ctx, c); err != nil {
		return fail(err)
	}
	return errs
}

// enabled refuses deliveries to an account that is disabled.
func (a *account) enabled() error {
	if a.Disabled {
		return errDisabled()
	}
	return nil
}

func errDisabled() error {
	return &fanfare.Error{Code: fanfare.Forbidden, Message: "the account is disabled", Hint: "an administrator can enable it"}
}

// joinKeywords checks keywords and returns them sorted and without duplicates. A keyword is an IMAP atom (RFC 9051, section 9: flag-keyword).
func joinKeywords(list []string) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	for _, k := range list {
		switch {
		case k == "" || len(k) > maxKeywordBytes:
			return "", badKeyword(fmt.Sprintf("a keyword must have 1 to %d bytes", maxKeywordBytes))
		case strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r) }):
			return "", badKeyword(fmt.Sprintf("the keyword %q has a character that is not permitted", k))
		}
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	sorted = slices.CompactFunc(sorted, strings.EqualFold)
	if len(sorted) > maxKeywords {
		return "", badKeyword(fmt.Sprintf("a message has at most %d keywords", maxKeywords))
	}
	return strings.Join(sorted, " "), nil
}

func badKeyword(why string) error {
	return named(ErrBadKeyword, &fanfare.Error{Code: fanfare.Invalid, Message: why, Hint: "use letters, digits and characters such as $ - _"})
}
