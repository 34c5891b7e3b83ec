package inbound

import (
	"context"
	"errors"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// limiter returns the limits of accounts that submit messages.
func (o *Options) limiter() *submission.Limiter {
	if o.Submitter != nil {
		return o.Submitter.Limiter
	}
	return submission.NewLimiter(0)
}

// refusalOf returns the reply for an error of package submission, or nil.
func refusalOf(err error) *smtpError {
	if r, ok := errors.AsType[*submission.Refusal](err); ok {
		return &smtpError{r.Code, r.Enhanced, r.Text}
	}
	return nil
}

// ownSender reads the addresses of the account that is logged in, and refuses the sender of a message if it is none of them.
func (s *session) ownSender(m *mail) bool {
	ctx, cancel := context.WithTimeout(s.server.ctx, takeTimeout)
	defer cancel()
	var err error
	m.own, err = s.server.options.Mailboxes.Addresses(ctx, s.account.ID)
	switch {
	case errors.Is(err, mailbox.ErrNoAccount):
		s.refuse(550, "5.7.1", "the account does not exist any more")
		return false
	case err != nil:
		s.server.options.Logger.Warn("cannot read the addresses of an account; the peer was asked to retry", "account", s.account.ID, "peer", s.peer, "error", err)
		s.reply(451, "4.3.0", "mailboxes cannot be read now; try again later")
		return false
	case !submission.Has(m.own, m.from):
		s.refuse(550, "5.7.1", "the sender must be %s, the address of the account, or one of its aliases", m.own[0])
		return false
	}
	return true
}

// isOutside reports whether a recipient without a mailbox here gets messages of the account by another server, and sets its normal address.
func (s *session) isOutside(to *recipient, err error) bool {
	if !errors.Is(err, errElsewhere) || s.account == nil || s.server.options.Submitter == nil || !s.server.options.Submitter.Permits(s.account, s.mail.from) {
		return false
	}
	normal, err := address.Parse(to.address)
	to.address, to.outside = normal, err == nil
	return to.outside
}

// relay sends a message to the recipients that are outside. It returns their results, or the reply to a message that is not sent at all.
func (s *session) relay(m *mail, text []byte) (results []*smtpError, refused *smtpError) {
	results = make([]*smtpError, len(m.to))
	if !slices.ContainsFunc(m.to, func(to recipient) bool { return to.outside }) {
		return results, nil
	}
	record := &submission.Record{EnvelopeID: m.envelopeID}
	for i := range m.to {
		to := &m.to[i]
		record.Recipients = append(record.Recipients, submission.Recipient{
			Address: to.address, Outside: to.outside, Original: to.original, Delivered: submission.Yes, Reported: !to.outside,
			Success: to.notify&notifySuccess != 0, Never: to.notify != notifyDefault && to.notify&notifyFailure == 0,
		})
	}
	ctx, cancel := context.WithTimeout(s.server.ctx, takeTimeout)
	defer cancel()
	if _, err := s.server.options.Submitter.Relayed(ctx, s.account, m.from, append(s.received(m), text...), record); err != nil {
		if fanfare.CodeOf(err) == fanfare.Forbidden {
			return nil, &smtpError{550, "5.7.1", err.Error()}
		}
		return nil, s.failed(s.account.ID, err)
	}
	for i := range m.to {
		if to := &record.Recipients[i]; to.Outside && to.Delivered == submission.No {
			results[i] = &smtpError{550, "5.1.3", to.Reply}
		}
	}
	return results, nil
}

// owner is the account of a session.
func (s *session) owner() []mailbox.Owner { return []mailbox.Owner{s.account.Owner} }
