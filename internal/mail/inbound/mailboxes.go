package inbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A smtpError is a reply that refuses something.
type smtpError struct {
	code     int
	enhanced string
	text     string
}

func (e *smtpError) Error() string { return e.text }

// temporary reports whether the peer may try again.
func (e *smtpError) temporary() bool { return e.code < 500 }

// mailboxRecipient executes RCPT of a server for mailboxes.
func (s *session) mailboxRecipient(path, params string) {
	to := recipient{address: path}
	if e := to.parameters(params, s.server.options.Kind); e != nil {
		s.refuse(e.code, e.enhanced, "%s", e.text)
		return
	}
	if strings.HasPrefix(path, "@") { // a source route (RFC 5321, appendix C)
		if _, after, ok := strings.Cut(path, ":"); ok {
			to.address = after
		}
	}
	if len(s.mail.to) >= maxMailboxRecipients {
		s.refuse(452, "4.5.3", "a message can have at most %d recipients", maxMailboxRecipients)
		return
	}
	ctx, cancel := context.WithTimeout(s.server.ctx, takeTimeout)
	defer cancel()
	accounts, err := s.server.accountsOf(ctx, to.address)
	if s.isOutside(&to, err) {
		err = nil
	} else if err == nil {
		accounts, err = permitsDelivery(accounts, s.mail.size)
	}
	if err == nil && s.account != nil {
		if err = s.server.senders.Take(s.server.options.Clock.Now(), s.account.ID, 1); err != nil {
			err = refusalOf(err)
		}
	}
	if e, ok := errors.AsType[*smtpError](err); ok {
		s.server.counters.refused.Add(1)
		if s.server.options.Kind == LMTP { // a mistake of the sender of the message, not of the peer
			s.reply(e.code, e.enhanced, "%s", e.text)
		} else {
			s.refuse(e.code, e.enhanced, "%s", e.text)
		}
		return
	}
	if err != nil {
		s.server.counters.notNow.Add(1)
		s.server.options.Logger.Warn("cannot look up a mailbox; the peer was asked to retry", "peer", s.peer, "error", err)
		s.reply(451, "4.3.0", "mailboxes cannot be read now; try again later")
		return
	}
	to.accounts = accounts
	s.mail.to = append(s.mail.to, to)
	s.reply(250, "2.1.5", "ok")
}

// accountsOf returns the accounts of an address, or a reply.
func (s *Server) accountsOf(ctx context.Context, to string) ([]mailbox.Account, error) {
	normal, err := address.Parse(to)
	if err != nil {
		return nil, &smtpError{550, "5.1.3", "the address is not valid"}
	}
	if accounts := s.recent.find(s.options.Clock.Now(), normal); accounts != nil {
		return accounts, nil
	}
	accounts, err := s.options.Recipients.Find(ctx, normal)
	switch {
	case err == nil:
		s.recent.add(s.options.Clock.Now(), normal, accounts)
		return accounts, nil
	case errors.Is(err, recipients.ErrNotHere) && s.options.Kind == Submission:
		return nil, errElsewhere
	case errors.Is(err, recipients.ErrForeign):
		return nil, &smtpError{550, "5.1.2", err.Error()}
	case errors.Is(err, recipients.ErrNotHere), errors.Is(err, recipients.ErrUnknown):
		return nil, nobody
	}
	return nil, err
}

var nobody = &smtpError{550, "5.1.1", "nobody has a mailbox with this address"}

// errElsewhere is the reply for an address without a mailbox here.
var errElsewhere = &smtpError{550, "5.7.1", "nobody has a mailbox with this address here, and the account may not send mail to other servers"}

// recentFor is how long the accounts of an address are remembered. The transaction that stores a message checks them again.
const recentFor = time.Second

// recentAddresses remembers the accounts of addresses that were found a moment ago, because a mail server sends many messages to the same
// people. It remembers no accounts with a quota, so that RCPT sees when they are full.
type recentAddresses struct {
	mu    sync.Mutex
	since time.Time
	of    map[string][]mailbox.Account
}

func (r *recentAddresses) find(now time.Time, address string) []mailbox.Account {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= recentFor || now.Before(r.since) {
		r.since = now
		clear(r.of)
	}
	return r.of[address]
}

const maxRecentAddresses = 10_000

func (r *recentAddresses) add(now time.Time, address string, accounts []mailbox.Account) {
	if slices.ContainsFunc(accounts, func(a mailbox.Account) bool { return a.Disabled || a.Quota.MaxBytes > 0 || a.Quota.MaxMessages > 0 }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(accounts) > 0 && len(r.of) < maxRecentAddresses && now.Sub(r.since) < recentFor {
		r.of[address] = accounts
	}
}

// permitsDelivery returns the accounts of an address that accept a message. A full one refuses it for all, because the peer sends it again.
func permitsDelivery(accounts []mailbox.Account, size int64) ([]mailbox.Account, error) {
	enabled := slices.DeleteFunc(slices.Clone(accounts), func(a mailbox.Account) bool { return a.Disabled })
	if len(enabled) == 0 {
		return nil, &smtpError{550, "5.2.1", "the mailbox is disabled"}
	}
	for i := range enabled {
		if q := &enabled[i].Quota; q.MaxBytes > 0 && q.Bytes+max(size, 1) > q.MaxBytes || q.MaxMessages > 0 && q.Messages >= q.MaxMessages {
			return nil, overQuota
		}
	}
	return enabled, nil
}

var overQuota = &smtpError{452, "4.2.2", "the mailbox is full"}

// deliverToMailboxes stores a message in the mailboxes of its recipients, and replies when that is durable.
func (s *session) deliverToMailboxes(m *mail, text []byte) {
	var err *smtpError
	if slices.Contains(text, 0) {
		err = &smtpError{554, "5.6.0", "the message contains a NUL character"}
	} else if s.server.options.Kind == Submission {
		var failed error
		if text, failed = submission.Complete(text, m.own, s.server.options.Name, s.server.options.Clock.Now()); failed != nil {
			err = refusalOf(failed)
		}
	}
	if err != nil {
		s.refuseData(m, err.code, err.enhanced, err.text)
		return
	}
	results, err := s.relay(m, text)
	if err != nil {
		s.replyData(m, err.code, err.enhanced, err.text)
		return
	}
	s.deliverAll(m, text, results)
	failpoint.Hit("before-return-reply")
	if s.server.options.Kind == LMTP {
		for _, e := range results {
			s.replyResult(e)
		}
		return
	}
	s.replyResult(s.reported(m, text, results))
}

// replyResult writes the reply for one recipient, or for all of them.
func (s *session) replyResult(e *smtpError) {
	if e == nil {
		s.refused = 0
		s.server.counters.taken.Add(1)
		s.reply(250, "2.6.0", "delivered")
		return
	}
	if e.temporary() {
		s.server.counters.notNow.Add(1)
	}
	s.reply(e.code, e.enhanced, "%s", e.text)
}

// deliverAll delivers a message to each account once. It sets the result for each recipient who has a mailbox here.
func (s *session) deliverAll(m *mail, text []byte, results []*smtpError) {
	var to []mailbox.Owner
	place := map[mailbox.AccountID]int{}
	for i := range m.to {
		for _, a := range m.to[i].accounts {
			if _, ok := place[a.ID]; !ok {
				place[a.ID] = len(to)
				to = append(to, a.Owner)
			}
		}
	}
	if len(to) == 0 {
		return
	}
	errs := s.server.store(s.trace(m, text), to)
	for i := range m.to {
		if m.to[i].outside {
			continue
		}
		stored := false
		for _, a := range m.to[i].accounts {
			if err := errs[place[a.ID]]; err == nil {
				stored = true
			} else if e := s.failed(a.ID, err); results[i] == nil || e.temporary() {
				results[i] = e
			}
		}
		if stored && results[i] != nil && !results[i].temporary() {
			results[i] = nil // another account of the address has it
		}
		if results[i] == nil {
			s.server.counters.delivered.Add(1)
		}
	}
}

// store stores a message durably.
func (s *Server) store(content []byte, to []mailbox.Owner) []error {
	ctx, cancel := context.WithTimeout(s.ctx, takeTimeout)
	defer cancel()
	return s.options.Mailboxes.Deliver(ctx, mailbox.Delivery{Content: content, Received: s.options.Clock.Now(), To: to, Existing: true})
}

// failed returns the reply for an error of a delivery.
func (s *session) failed(id mailbox.AccountID, err error) *smtpError {
	switch {
	case errors.Is(err, mailbox.ErrOverQuota):
		return overQuota
	case errors.Is(err, mailbox.ErrTooLarge):
		return &smtpError{552, "5.2.3", "the message is larger than the mailbox accepts"}
	case errors.Is(err, mailbox.ErrNoAccount), fanfare.CodeOf(err) == fanfare.NotFound:
		return nobody
	case fanfare.CodeOf(err) == fanfare.Forbidden:
		return &smtpError{550, "5.2.1", "the mailbox is disabled"}
	}
	s.server.options.Logger.Warn("cannot store a message in a mailbox; the peer was asked to retry", "account", id, "peer", s.peer, "error", err)
	return &smtpError{451, "4.3.0", "the message cannot be stored now; try again later"}
}

// trace adds the fields of final delivery (RFC 5321, section 4.4). All recipients have the same content, so the recipient is named only if there is one.
func (s *session) trace(m *mail, text []byte) []byte {
	return slices.Concat([]byte("Return-Path: <"+m.from+">\r\n"), s.received(m), text)
}

// received is the field Received of a message (RFC 5321, section 4.4).
func (s *session) received(m *mail) []byte {
	recipient := ""
	if len(m.to) == 1 {
		recipient = "\r\n for <" + m.to[0].address + ">"
	}
	return fmt.Appendf(nil, "Received: from %s ([%s])\r\n by %s with %s%s; %s\r\n",
		s.hello, s.peer, s.server.options.Name, s.protocol(m), recipient, s.server.options.Clock.Now().Format(time.RFC1123Z))
}

// protocol returns the name of the protocol for Received (RFC 3848, RFC 6531).
func (s *session) protocol(m *mail) string {
	name := "ESMTP"
	switch {
	case s.server.options.Kind == LMTP:
		name = "LMTP"
	case !s.extended:
		return "SMTP"
	}
	if m.utf8 {
		name = "UTF8" + strings.TrimPrefix(name, "E")
	}
	if s.secure {
		name += "S"
	}
	if s.account != nil {
		name += "A"
	}
	return name
}
