package smtp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A transaction has one message, or several messages with the same content, whose body is
// sent once. All of them are equal except for the recipient.
type transaction struct {
	messages   []*driver.Message // those that receive the body
	individual driver.Message    // the message for the only recipient; unset if its To is empty

	// State of the envelope.
	replies   int               // to RCPT
	accepted  []*driver.Message // whose recipient was accepted
	postponed []*driver.Message // beyond the peer's maximum for a transaction
	limit     int               // maximum number of recipients, if the peer has stated one; 0: unknown
	refused   []refusedMessage
}

// refusedMessage is a message whose recipient, or whose whole envelope, was refused.
type refusedMessage struct {
	message *driver.Message
	refusal
}

// message returns the message to send.
func (tx *transaction) message() *driver.Message {
	if tx.individual.To != "" {
		return &tx.individual
	}
	return tx.messages[0]
}

// useIndividual switches to the individual message if only one recipient of a shared
// message is left. If that message cannot be made or sent, the recipient gets the shared
// one.
func (s *session) useIndividual(tx *transaction) {
	if len(tx.messages) != 1 || tx.messages[0].Individual == nil || tx.individual.To != "" {
		return
	}
	if alone, err := tx.messages[0].Individual(); err == nil && s.conn.extensions.unsendable(&alone) == "" {
		tx.individual = alone
	}
}

// newTransaction starts a transaction for a message and others with the same content.
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

// sameContent reports whether two messages have the same content. It compares the bytes, so
// that a wrong SharedContent does no harm.
func (c *conn) sameContent(message, with *driver.Message) bool {
	return message.SharedContent == with.SharedContent && message.From == with.From && message.EightBit == with.EightBit && needsUTF8(message) == needsUTF8(with) &&
		bytes.Equal(message.Body, with.Body) && bytes.Equal(message.Attachments, with.Attachments) && c.extensions.unsendable(message) == ""
}

// reset clears the state of the envelope.
func (tx *transaction) reset() {
	tx.replies, tx.limit, tx.accepted, tx.postponed, tx.refused = 0, 0, tx.accepted[:0], tx.postponed[:0], tx.refused[:0]
}

// rcptReply notes the reply to the RCPT of a message. After an accepted recipient, a
// refusal may only say that there are too many: that message goes into the next
// transaction.
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
		tx.refused = append(tx.refused, refusedMessage{message, r})
	}
}

// tooMany reports whether a refusal is about the number of recipients, which has code 452
// (RFC 5321, section 4.5.3.1.10) or X.5.3 (RFC 3463, section 3.6).
func (r refusal) tooMany() bool {
	return r.code != 421 && (strings.HasPrefix(r.text, "4.5.3 ") || strings.HasPrefix(r.text, "5.5.3 ") ||
		strings.Contains(strings.ToLower(r.text), "too many recipients"))
}

// refusedPipelining returns a reply that is about pipelined commands.
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

// keepAccepted limits the body to accepted recipients.
func (tx *transaction) keepAccepted() { tx.messages = append(tx.messages[:0], tx.accepted...) }

// failoverRefused gives refused messages to another relay where possible.
func (s *session) failoverRefused(tx *transaction) {
	if len(tx.refused) > 0 {
		tx.refused = slices.DeleteFunc(tx.refused, s.failover)
	}
}

// settle ends a transaction without a body. If the whole envelope was refused, that refusal
// applies to all messages without one of their own; otherwise these stay in tx.messages. It
// returns the refusal that ends the connection, if there is one.
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
			tx.refused = append(tx.refused, refusedMessage{message, all})
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

// holdAgain puts messages in front of the held ones, so that they are sent next.
func (s *session) holdAgain(messages []*driver.Message) {
	s.held = slices.Insert(s.held, 0, messages...)
}

// release releases the messages for the body. If that fails, the remaining ones are held
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

// report reports the outcome of the body, and those of refused recipients.
func (s *session) report(tx *transaction, outcome driver.Outcome) error {
	if len(tx.messages) == 1 && len(tx.refused) == 0 {
		return s.queue.Report(tx.messages[0], outcome)
	}
	outcomes := slices.Repeat([]driver.Outcome{outcome}, len(tx.messages))
	return s.reportAll(tx.messages, outcomes, tx.refused)
}

// reportAll reports released messages together with refused ones.
func (s *session) reportAll(messages []*driver.Message, outcomes []driver.Outcome, also []refusedMessage) error {
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

// reportRefusals reports messages of which only the envelope was sent.
func (s *session) reportRefusals(all []refusedMessage) step {
	switch len(all) {
	case 0:
		return proceed
	case 1:
		return s.settle(all[0].message, verdictOf(all[0].code), all[0].code, all[0].text)
	}
	if err := s.reportAll(nil, nil, all); err != nil {
		s.err = fmt.Errorf("cannot record the outcome: %w", err)
		return failed
	}
	return proceed
}

// returnTransaction returns the messages of a transaction, if there is one, to the front of
// the queue.
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

// returnHeld returns the held messages.
func (s *session) returnHeld() {
	s.returnAll(s.held)
	s.held = nil
}

func (s *session) returnAll(messages []*driver.Message) {
	for _, message := range slices.Backward(messages) {
		s.queue.Return(message)
	}
}
