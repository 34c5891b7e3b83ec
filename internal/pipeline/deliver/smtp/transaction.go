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
func (tx *transaction) message() *driver.Message {
	if tx.individual.To != "" {
		return &tx.individual
	}
	return tx.messages[0]
}

// useIndividual has the only recipient of a message which others could have got get his
// own. Where that cannot be made or be sent, he gets what the others would have got.
func (s *session) useIndividual(tx *transaction) {
	if len(tx.messages) != 1 || tx.messages[0].Individual == nil || tx.individual.To != "" {
		return
	}
	if alone, err := tx.messages[0].Individual(); err == nil && s.conn.extensions.unsendable(&alone) == "" {
		tx.individual = alone
	}
}

// newTransaction makes a parcel of a message and those that may go with it.
func (s *session) newTransaction(message *driver.Message) *transaction {
	tx := s.gatherRecipients(message)
	s.useIndividual(tx)
	return tx
}

func (s *session) gatherRecipients(message *driver.Message) *transaction {
	tx := &s.transactions[s.nextTransaction]
	s.nextTransaction ^= 1
	tx.messages, tx.individual = append(tx.messages[:0], message), driver.Message{}
	tx.reset()
	most := s.d.cfg.MaxRecipients
	if s.conn.maxRecipients > 0 {
		most = min(most, s.conn.maxRecipients)
	}
	if message.SharedContent == 0 || most <= 1 {
		return tx
	}
	for len(s.held) > 0 && len(tx.messages) < most && s.conn.sameContent(s.held[0], message) {
		tx.messages, s.held = append(tx.messages, s.held[0]), s.held[1:]
	}
	if len(tx.messages) == most {
		return tx
	}
	known := len(tx.messages)
	tx.messages = s.queue.TakeSameContent(tx.messages, message, most-known)
	fit := known
	for _, other := range tx.messages[known:] {
		if s.conn.sameContent(other, message) {
			tx.messages[fit] = other
			fit++
		} else {
			s.held = append(s.held, other)
		}
	}
	tx.messages = tx.messages[:fit]
	return tx
}

// sameContent reports whether l is the same message as another that is sent: that its
// bytes are the same is not taken on trust.
func (c *conn) sameContent(message, with *driver.Message) bool {
	return message.SharedContent == with.SharedContent && message.From == with.From && message.EightBit == with.EightBit && needsUTF8(message) == needsUTF8(with) &&
		bytes.Equal(message.Body, with.Body) && bytes.Equal(message.Attachments, with.Attachments) && c.extensions.unsendable(message) == ""
}

// reset forgets the answers to an envelope.
func (tx *transaction) reset() {
	tx.replies, tx.limit, tx.accepted, tx.postponed, tx.refused = 0, 0, tx.accepted[:0], tx.postponed[:0], tx.refused[:0]
}

// rcptReply notes the answer to the RCPT of a message. Behind one that is good, a
// refusal may say that there are too many recipients: that is no judgement on this
// one, which comes with the next transaction.
func (tx *transaction) rcptReply(message *driver.Message, r refusal, good bool) {
	tx.replies++
	switch {
	case good:
		tx.accepted = append(tx.accepted, message)
	case len(tx.accepted) > 0 && (r.code == 452 || r.tooMany()):
		tx.postponed = append(tx.postponed, message)
		if r.tooMany() || len(tx.postponed) > 1 {
			tx.limit = len(tx.accepted)
		}
	default:
		tx.refused = append(tx.refused, refused{message, r})
	}
}

// tooMany reports whether a refusal speaks of the number of recipients, for which
// 452 is meant (RFC 5321, section 4.5.3.1.10) and X.5.3 (RFC 3463, section 3.6).
func (r refusal) tooMany() bool {
	return r.code != 421 && (strings.HasPrefix(r.text, "4.5.3 ") || strings.HasPrefix(r.text, "5.5.3 ") ||
		strings.Contains(strings.ToLower(r.text), "too many recipients"))
}

// refusedPipelining finds what a peer says of commands that came too early.
func (tx *transaction) refusedPipelining(all refusal) (text string, about bool) {
	if all.code != 0 && aboutPipelining(all.text) {
		return fmt.Sprintf("%d %s", all.code, all.text), true
	}
	for _, r := range tx.refused {
		if aboutPipelining(r.text) {
			return fmt.Sprintf("%d %s", r.code, r.text), true
		}
	}
	return "", false
}

// keepAccepted leaves the body to those whose recipients are good.
func (tx *transaction) keepAccepted() { tx.messages = append(tx.messages[:0], tx.accepted...) }

// failoverRefused takes out what another relay gets.
func (s *session) failoverRefused(tx *transaction) {
	if len(tx.refused) > 0 {
		tx.refused = slices.DeleteFunc(tx.refused, s.failover)
	}
}

// settle ends a parcel of which no body follows: by a refusal of the whole those that
// were not refused by themselves are, without one they are what is left of it. It
// returns the refusal that ends the connection, where one did.
func (tx *transaction) settle(all refusal) (end refusal) {
	left := slices.Concat(tx.accepted, tx.postponed, tx.messages[tx.replies:])
	if all.code != 0 {
		end = all
		gone := tx.accepted
		left = tx.postponed
		if all.command == mail {
			gone, left = tx.messages, nil
		}
		for _, message := range gone {
			tx.refused = append(tx.refused, refused{message, all})
		}
	}
	for _, r := range tx.refused {
		if r.code == 421 {
			end = r.refusal
		}
	}
	tx.messages = append(tx.messages[:0], left...)
	return end
}

// holdAgain has messages go with what comes next, in front of what is in hand.
func (s *session) holdAgain(messages []*driver.Message) {
	s.held = slices.Insert(s.held, 0, messages...)
}

// release asks for the body of p. Where it may not leave, what is left of p comes
// again.
func (s *session) release(tx *transaction) bool {
	var left []*driver.Message
	released := false
	if len(tx.messages) == 1 {
		released = s.queue.Release(tx.messages[0])
	} else {
		left, released = s.queue.ReleaseAll(tx.messages)
	}
	if !released {
		for _, r := range tx.refused {
			left = append(left, r.message)
		}
		s.holdAgain(left)
	}
	return released
}

// report gives the outcome of the body of p, and with it those of the recipients
// that were refused.
func (s *session) report(tx *transaction, outcome driver.Outcome) error {
	if len(tx.messages) == 1 && len(tx.refused) == 0 {
		return s.queue.Report(tx.messages[0], outcome)
	}
	outcomes := slices.Repeat([]driver.Outcome{outcome}, len(tx.messages))
	return s.reportAll(tx.messages, outcomes, tx.refused)
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
func (s *session) returnTransaction(tx *transaction) {
	if tx == nil {
		return
	}
	for _, r := range slices.Backward(tx.refused) {
		if !slices.Contains(tx.messages, r.message) {
			s.queue.Return(r.message)
		}
	}
	s.returnAll(tx.messages)
}

// returnHeld returns what is in hand.
func (s *session) returnHeld() {
	s.returnAll(s.held)
	s.held = nil
}

func (s *session) returnAll(messages []*driver.Message) {
	for _, message := range slices.Backward(messages) {
		s.queue.Return(message)
	}
}
