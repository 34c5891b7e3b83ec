package smtp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A parcel is what one transaction is about: a message, or several that are one
// message, of which the body is written once. The first stands for all of them but
// for who gets it.
type transaction struct {
	messages   []*driver.Message // that the body is for
	individual driver.Message    // the message to the only recipient; without To: messages have it

	// What the answers to the envelope say so far.
	replies   int               // to RCPT
	accepted  []*driver.Message // recipients that are good
	postponed []*driver.Message // more than the peer takes in a transaction
	limit     int               // of recipients, where the peer has one; 0: it has said nothing of it
	refused   []refused
}

// refused is a message whose recipient, or whose whole envelope, is refused.
type refused struct {
	message *driver.Message
	refusal
}

// message is what is sent.
func (p *transaction) message() *driver.Message {
	if p.individual.To != "" {
		return &p.individual
	}
	return p.messages[0]
}

// useIndividual has the only recipient of a message which others could have got get his
// own. Where that cannot be made or be sent, he gets what the others would have got.
func (s *session) useIndividual(p *transaction) {
	if len(p.messages) != 1 || p.messages[0].Individual == nil || p.individual.To != "" {
		return
	}
	if alone, err := p.messages[0].Individual(); err == nil && s.conn.extensions.unsendable(&alone) == "" {
		p.individual = alone
	}
}

// newTransaction makes a parcel of a message and those that may go with it.
func (s *session) newTransaction(l *driver.Message) *transaction {
	p := s.gatherRecipients(l)
	s.useIndividual(p)
	return p
}

func (s *session) gatherRecipients(l *driver.Message) *transaction {
	p := &s.transactions[s.nextTransaction]
	s.nextTransaction ^= 1
	p.messages, p.individual = append(p.messages[:0], l), driver.Message{}
	p.reset()
	most := s.d.cfg.MaxRecipients
	if s.conn.maxRecipients > 0 {
		most = min(most, s.conn.maxRecipients)
	}
	if l.SharedContent == 0 || most <= 1 {
		return p
	}
	for len(s.held) > 0 && len(p.messages) < most && s.conn.sameContent(s.held[0], l) {
		p.messages, s.held = append(p.messages, s.held[0]), s.held[1:]
	}
	if len(p.messages) == most {
		return p
	}
	known := len(p.messages)
	p.messages = s.queue.TakeSameContent(p.messages, l, most-known)
	fit := known
	for _, other := range p.messages[known:] {
		if s.conn.sameContent(other, l) {
			p.messages[fit] = other
			fit++
		} else {
			s.held = append(s.held, other)
		}
	}
	p.messages = p.messages[:fit]
	return p
}

// sameContent reports whether l is the same message as another that is sent: that its
// bytes are the same is not taken on trust.
func (c *conn) sameContent(l, with *driver.Message) bool {
	return l.SharedContent == with.SharedContent && l.From == with.From && l.EightBit == with.EightBit && needsUTF8(l) == needsUTF8(with) &&
		bytes.Equal(l.Body, with.Body) && bytes.Equal(l.Attachments, with.Attachments) && c.extensions.unsendable(l) == ""
}

// reset forgets the answers to an envelope.
func (p *transaction) reset() {
	p.replies, p.limit, p.accepted, p.postponed, p.refused = 0, 0, p.accepted[:0], p.postponed[:0], p.refused[:0]
}

// rcptReply notes the answer to the RCPT of a message. Behind one that is good, a
// refusal may say that there are too many recipients: that is no judgement on this
// one, which comes with the next transaction.
func (p *transaction) rcptReply(l *driver.Message, r refusal, good bool) {
	p.replies++
	switch {
	case good:
		p.accepted = append(p.accepted, l)
	case len(p.accepted) > 0 && (r.code == 452 || r.tooMany()):
		p.postponed = append(p.postponed, l)
		if r.tooMany() || len(p.postponed) > 1 {
			p.limit = len(p.accepted)
		}
	default:
		p.refused = append(p.refused, refused{l, r})
	}
}

// tooMany reports whether a refusal speaks of the number of recipients, for which
// 452 is meant (RFC 5321, section 4.5.3.1.10) and X.5.3 (RFC 3463, section 3.6).
func (r refusal) tooMany() bool {
	return r.code != 421 && (strings.HasPrefix(r.text, "4.5.3 ") || strings.HasPrefix(r.text, "5.5.3 ") ||
		strings.Contains(strings.ToLower(r.text), "too many recipients"))
}

// refusedPipelining finds what a peer says of commands that came too early.
func (p *transaction) refusedPipelining(all refusal) (text string, about bool) {
	if all.code != 0 && aboutPipelining(all.text) {
		return fmt.Sprintf("%d %s", all.code, all.text), true
	}
	for _, r := range p.refused {
		if aboutPipelining(r.text) {
			return fmt.Sprintf("%d %s", r.code, r.text), true
		}
	}
	return "", false
}

// keepAccepted leaves the body to those whose recipients are good.
func (p *transaction) keepAccepted() { p.messages = append(p.messages[:0], p.accepted...) }

// failoverRefused takes out what another relay gets.
func (s *session) failoverRefused(p *transaction) {
	if len(p.refused) > 0 {
		p.refused = slices.DeleteFunc(p.refused, s.failover)
	}
}

// settle ends a parcel of which no body follows: by a refusal of the whole those that
// were not refused by themselves are, without one they are what is left of it. It
// returns the refusal that ends the connection, where one did.
func (p *transaction) settle(all refusal) (end refusal) {
	left := slices.Concat(p.accepted, p.postponed, p.messages[p.replies:])
	if all.code != 0 {
		end = all
		gone := p.accepted
		left = p.postponed
		if all.command == mail {
			gone, left = p.messages, nil
		}
		for _, l := range gone {
			p.refused = append(p.refused, refused{l, all})
		}
	}
	for _, r := range p.refused {
		if r.code == 421 {
			end = r.refusal
		}
	}
	p.messages = append(p.messages[:0], left...)
	return end
}

// holdAgain has messages go with what comes next, in front of what is in hand.
func (s *session) holdAgain(messages []*driver.Message) {
	s.held = slices.Insert(s.held, 0, messages...)
}

// release asks for the body of p. Where it may not leave, what is left of p comes
// again.
func (s *session) release(p *transaction) bool {
	var left []*driver.Message
	released := false
	if len(p.messages) == 1 {
		released = s.queue.Release(p.messages[0])
	} else {
		left, released = s.queue.ReleaseAll(p.messages)
	}
	if !released {
		for _, r := range p.refused {
			left = append(left, r.message)
		}
		s.holdAgain(left)
	}
	return released
}

// report gives the outcome of the body of p, and with it those of the recipients
// that were refused.
func (s *session) report(p *transaction, outcome driver.Outcome) error {
	if len(p.messages) == 1 && len(p.refused) == 0 {
		return s.queue.Report(p.messages[0], outcome)
	}
	outcomes := slices.Repeat([]driver.Outcome{outcome}, len(p.messages))
	return s.reportAll(p.messages, outcomes, p.refused)
}

// reportAll reports released messages, and with them what was refused.
func (s *session) reportAll(messages []*driver.Message, outcomes []driver.Outcome, also []refused) error {
	now := time.Now()
	for _, r := range also {
		if s.queue.Release(r.message) {
			messages, outcomes = append(messages, r.message), append(outcomes, s.outcomeOf(r.refusal, now))
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return s.queue.ReportAll(messages, outcomes)
}

// reportRefusals reports messages of which nothing was written but their envelope.
func (s *session) reportRefusals(all []refused) step {
	switch len(all) {
	case 0:
		return proceed
	case 1:
		return s.settle(all[0].message, verdictOf(all[0].code), all[0].code, all[0].text)
	}
	if err := s.reportAll(nil, nil, all); err != nil {
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return failed
	}
	return proceed
}

// returnTransaction returns what is left of a parcel, if there is one, to the front of the
// queue.
func (s *session) returnTransaction(p *transaction) {
	if p == nil {
		return
	}
	for _, r := range slices.Backward(p.refused) {
		if !slices.Contains(p.messages, r.message) {
			s.queue.Return(r.message)
		}
	}
	s.returnAll(p.messages)
}

// returnHeld returns what is in hand.
func (s *session) returnHeld() {
	s.returnAll(s.held)
	s.held = nil
}

func (s *session) returnAll(messages []*driver.Message) {
	for _, l := range slices.Backward(messages) {
		s.queue.Return(l)
	}
}
