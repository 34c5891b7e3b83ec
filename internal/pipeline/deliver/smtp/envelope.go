package smtp

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// The commands of an envelope, in order.
const (
	mail = iota
	rcpt
	data
	commands
)

var commandNames = [commands]string{"MAIL", "RCPT", "DATA"}

// envelope sends only the envelope of tx and reads the replies. It reports whether the
// body may follow.
func (s *session) envelope(ctx context.Context, tx *transaction) (bool, step) {
	c := s.conn
	c.socket.setDeadline(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if c.mode == LockStep {
		return s.readReplies(ctx, tx, LockStep)
	}
	c.out = c.appendEnvelope(c.out[:0], tx)
	// A failed write is detected when the reply is read, and a reply that has arrived is more
	// informative than the failure.
	_ = c.write(c.out)
	ready, next := s.readReplies(ctx, tx, Pipelining)
	if next == proceed {
		s.d.mode.confirm(Pipelining)
	}
	return ready, next
}

// A refusal is a negative reply to a command.
type refusal struct {
	command int
	code    int // 0: none
	text    string
}

// readReplies reads the replies to the envelope of tx, which was written in mode as (in
// lock step it writes each command itself), and settles refused messages. Refused
// recipients have their outcome, and the body is for the others.
//
// Servers differ in the state after a refusal inside a group. After a refused RCPT the
// transaction stays open: the server refuses the next MAIL as nested, but accepts its RCPT
// and DATA under the previous sender. So the body may follow only if MAIL, at least one
// RCPT and DATA were accepted. The connection is closed if DATA was accepted without MAIL
// or a recipient, and after any unexpected reply. After every other refusal, RSET precedes
// the next envelope.
func (s *session) readReplies(ctx context.Context, tx *transaction, as Mode) (ready bool, _ step) {
	c := s.conn
	if c.needsReset && as == LockStep {
		c.needsReset, c.resetting = false, true
		_ = c.write([]byte(cmdReset))
	}
	if c.resetting {
		code, text, err := c.reply()
		if err == nil && code != 250 {
			err = fmt.Errorf("%w: unexpected reply to RSET: %d %s", errOutOfSync, code, text)
		}
		if err != nil {
			return false, s.connectionBroken(ctx, tx, as, err)
		}
		c.resetting = false
	}
	tx.reset()
	var all refusal // of the whole transaction: by MAIL or by DATA
	mustClose := false
	for at := range len(tx.messages) + 2 {
		command, message := rcpt, tx.messages[0]
		switch at {
		case 0:
			command = mail
		case len(tx.messages) + 1:
			command = data
		default:
			message = tx.messages[at-1]
		}
		if as == LockStep {
			if command == data && len(tx.accepted) == 0 {
				break
			}
			_ = c.write(s.encode(command, tx, message))
		}
		code, text, err := c.reply()
		good := err == nil && (command < data && code/100 == 2 || command == data && code == 354)
		if err == nil && !good && code/100 != 4 && code/100 != 5 {
			err = fmt.Errorf("%w: unexpected reply to %s: %d %s", errOutOfSync, commandNames[command], code, text)
		}
		if err != nil {
			if all.code == 0 && len(tx.refused) == 0 {
				return false, s.connectionBroken(ctx, tx, as, err)
			}
			mustClose = true // the refusal before it counts
			break
		}
		r := refusal{command, code, ""}
		if !good {
			r.text = string(text)
		}
		switch {
		case command == data:
			mustClose = good && (all.code != 0 || len(tx.accepted) == 0)
			if !good && all.code == 0 && len(tx.accepted) > 0 {
				all = r
			}
		case command == mail && !good:
			all = r
		case command == rcpt && all.code == 0:
			tx.rcptReply(message, r, good)
		}
		if mustClose = mustClose || code == 421; mustClose || as == LockStep && all.code != 0 {
			break
		}
	}
	return s.afterEnvelope(tx, as, all, mustClose)
}
func (s *session) encode(command int, tx *transaction, message *driver.Message) []byte {
	c := s.conn
	switch command {
	case mail:
		c.out = c.extensions.appendMail(c.out[:0], tx)
	case rcpt:
		c.out = appendRcpt(c.out[:0], message)
	default:
		c.out = append(c.out[:0], cmdData...)
	}
	return c.out
}

// afterEnvelope acts on the replies to an envelope. If a refusal concerns the connection
// and not the messages, these are sent again.
func (s *session) afterEnvelope(tx *transaction, as Mode, all refusal, mustClose bool) (ready bool, _ step) {
	c := s.conn
	if text, about := tx.refusedPipelining(all); as > LockStep && about {
		s.d.mode.refused(as, text)
		s.returnTransaction(tx)
		return false, reconnect
	}
	switch {
	case all.code == 0 && !mustClose && len(tx.accepted) > 0:
		tx.keepAccepted()
		if len(tx.postponed) > 0 {
			s.holdAgain(tx.postponed)
		}
		if tx.limit > 0 {
			c.maxRecipients = tx.limit
		}
		s.failoverRefused(tx)
		s.markUseful(354)
		return true, proceed
	case all.command != mail || all.code == 0:
	case all.code == 421 && s.closedWhileIdle():
		// It was sent, or concerns a time, when the connection was idle.
		s.returnTransaction(tx)
		return false, reconnect
	case as == Grouped && all.code == 503:
		// 503 "bad sequence": the previous transaction did not end where the client
		// assumes. After a body, this does not concern the message.
		s.d.mode.connectionBroke(as, fmt.Errorf("unexpected reply to MAIL: %d %s", all.code, all.text))
		s.returnTransaction(tx)
		return false, reconnect
	case all.code == 421 && c.useful || all.code/100 == 4 && c.sent > 0:
		// The peer accepts no more messages on this connection: many servers close it with
		// 421 after a number of messages, and OpenSMTPD refuses every further MAIL with
		// 452. If the reply is about the message, a new connection gets it again.
		s.holdAgain(tx.messages)
		if !mustClose {
			c.quit()
		}
		return false, reconnect
	}
	return false, s.settleRefusals(tx, all, mustClose)
}

// settleRefusals reports the refused messages of a transaction without a body; the others
// are sent again.
func (s *session) settleRefusals(tx *transaction, all refusal, mustClose bool) step {
	c := s.conn
	end := tx.settle(all)
	s.holdAgain(tx.messages)
	s.markUseful(tx.refused[0].code)
	served := c.useful
	c.useful = true
	s.failoverRefused(tx)
	if next := s.reportRefusals(tx.refused); next != proceed {
		return next
	}
	if end.code == 421 && !served {
		return s.endedBy421(end.code, end.text)
	}
	if mustClose {
		return reconnect
	}
	c.needsReset = true
	return proceed
}

// failover gives a temporarily refused message to another relay of the channel, if there is
// one and the queue finds that the refusal concerns the relay.
func (s *session) failover(r refusedMessage) bool {
	return verdictOf(r.code) == driver.Temporary && s.queue.Failover(r.message, s.outcomeOf(r.refusal, time.Now()))
}

func (s *session) outcomeOf(r refusal, at time.Time) driver.Outcome {
	return driver.Outcome{Verdict: verdictOf(r.code), Code: r.code, Text: r.text, Relay: s.conn.relay, At: at}
}

// connectionBroken returns the messages of a connection that broke, or fell out of sync,
// before any byte of a body was written.
func (s *session) connectionBroken(ctx context.Context, tx *transaction, as Mode, err error) step {
	c := s.conn
	s.returnTransaction(tx)
	if ctx.Err() != nil {
		return finished
	}
	if s.closedWhileIdle() || s.d.mode.connectionBroke(as, err) || c.useful {
		return reconnect
	}
	s.err = fmt.Errorf("the connection to %s was lost before a body was sent: %w", c.relay, err)
	return failed
}
