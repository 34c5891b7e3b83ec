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
type parcel struct {
	messages []*driver.Message // that the body is for
	alone    driver.Message    // the message to the only recipient; without To: messages have it

	// What the answers to the envelope say so far.
	answers int               // to RCPT
	taken   []*driver.Message // recipients that are good
	later   []*driver.Message // more than the peer takes in a transaction
	limit   int               // of recipients, where the peer has one; 0: it has said nothing of it
	refused []refused
}

// refused is a message whose recipient, or whose whole envelope, is refused.
type refused struct {
	message *driver.Message
	refusal
}

// message is what is sent.
func (p *parcel) message() *driver.Message {
	if p.alone.To != "" {
		return &p.alone
	}
	return p.messages[0]
}

// settleAlone has the only recipient of a message which others could have got get his
// own. Where that cannot be made or be sent, he gets what the others would have got.
func (s *session) settleAlone(p *parcel) {
	if len(p.messages) != 1 || p.messages[0].Individual == nil || p.alone.To != "" {
		return
	}
	if alone, err := p.messages[0].Individual(); err == nil && s.conn.can.unsendable(&alone) == "" {
		p.alone = alone
	}
}

// pack makes a parcel of a message and those that may go with it.
func (s *session) pack(l *driver.Message) *parcel {
	p := s.gather(l)
	s.settleAlone(p)
	return p
}

func (s *session) gather(l *driver.Message) *parcel {
	p := &s.parcels[s.turn]
	s.turn ^= 1
	p.messages, p.alone = append(p.messages[:0], l), driver.Message{}
	p.begin()
	most := s.d.cfg.MaxRecipients
	if s.conn.most > 0 {
		most = min(most, s.conn.most)
	}
	if l.SharedContent == 0 || most <= 1 {
		return p
	}
	for len(s.hand) > 0 && len(p.messages) < most && s.conn.goesWith(s.hand[0], l) {
		p.messages, s.hand = append(p.messages, s.hand[0]), s.hand[1:]
	}
	if len(p.messages) == most {
		return p
	}
	known := len(p.messages)
	p.messages = s.queue.TakeSameContent(p.messages, l, most-known)
	fit := known
	for _, other := range p.messages[known:] {
		if s.conn.goesWith(other, l) {
			p.messages[fit] = other
			fit++
		} else {
			s.hand = append(s.hand, other)
		}
	}
	p.messages = p.messages[:fit]
	return p
}

// goesWith reports whether l is the same message as another that is sent: that its
// bytes are the same is not taken on trust.
func (c *conn) goesWith(l, with *driver.Message) bool {
	return l.SharedContent == with.SharedContent && l.From == with.From && l.EightBit == with.EightBit && needsUTF8(l) == needsUTF8(with) &&
		bytes.Equal(l.Body, with.Body) && bytes.Equal(l.Attachments, with.Attachments) && c.can.unsendable(l) == ""
}

// begin forgets the answers to an envelope.
func (p *parcel) begin() {
	p.answers, p.limit, p.taken, p.later, p.refused = 0, 0, p.taken[:0], p.later[:0], p.refused[:0]
}

// answered notes the answer to the RCPT of a message. Behind one that is good, a
// refusal may say that there are too many recipients: that is no judgement on this
// one, which comes with the next transaction.
func (p *parcel) answered(l *driver.Message, r refusal, good bool) {
	p.answers++
	switch {
	case good:
		p.taken = append(p.taken, l)
	case len(p.taken) > 0 && (r.code == 452 || r.tooMany()):
		p.later = append(p.later, l)
		if r.tooMany() || len(p.later) > 1 {
			p.limit = len(p.taken)
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

// aboutGrouping finds what a peer says of commands that came too early.
func (p *parcel) aboutGrouping(all refusal) (text string, about bool) {
	if all.code != 0 && aboutGrouping(all.text) {
		return fmt.Sprintf("%d %s", all.code, all.text), true
	}
	for _, r := range p.refused {
		if aboutGrouping(r.text) {
			return fmt.Sprintf("%d %s", r.code, r.text), true
		}
	}
	return "", false
}

// conclude leaves the body to those whose recipients are good.
func (p *parcel) conclude() { p.messages = append(p.messages[:0], p.taken...) }

// passOn takes out what another relay gets.
func (s *session) passOn(p *parcel) {
	if len(p.refused) > 0 {
		p.refused = slices.DeleteFunc(p.refused, s.elsewhere)
	}
}

// refuse ends a parcel of which no body follows: by a refusal of the whole those that
// were not refused by themselves are, without one they are what is left of it. It
// returns the refusal that ends the connection, where one did.
func (p *parcel) refuse(all refusal) (end refusal) {
	left := slices.Concat(p.taken, p.later, p.messages[p.answers:])
	if all.code != 0 {
		end = all
		gone := p.taken
		left = p.later
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

// keep has messages go with what comes next, in front of what is in hand.
func (s *session) keep(messages []*driver.Message) { s.hand = slices.Insert(s.hand, 0, messages...) }

// release asks for the body of p. Where it may not leave, what is left of p comes
// again.
func (s *session) release(p *parcel) bool {
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
		s.keep(left)
	}
	return released
}

// report gives the outcome of the body of p, and with it those of the recipients
// that were refused.
func (s *session) report(p *parcel, outcome driver.Outcome) error {
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

// settleRefused reports messages of which nothing was written but their envelope.
func (s *session) settleRefused(all []refused) step {
	switch len(all) {
	case 0:
		return goOn
	case 1:
		return s.settle(all[0].message, verdictOf(all[0].code), all[0].code, all[0].text)
	}
	if err := s.reportAll(nil, nil, all); err != nil {
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return failed
	}
	return goOn
}

// giveBack returns what is left of a parcel, if there is one, to the front of the
// queue.
func (s *session) giveBack(p *parcel) {
	if p == nil {
		return
	}
	for _, r := range slices.Backward(p.refused) {
		if !slices.Contains(p.messages, r.message) {
			s.queue.Return(r.message)
		}
	}
	s.giveBackAll(p.messages)
}

// giveBackHand returns what is in hand.
func (s *session) giveBackHand() {
	s.giveBackAll(s.hand)
	s.hand = nil
}

func (s *session) giveBackAll(messages []*driver.Message) {
	for _, l := range slices.Backward(messages) {
		s.queue.Return(l)
	}
}
