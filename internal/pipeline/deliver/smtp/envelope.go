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

// envelope sends the envelope of p by itself and reads the answers. It reports
// whether the body may follow.
func (s *session) envelope(ctx context.Context, p *transaction) (bool, step) {
	c := s.conn
	c.socket.setDeadline(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if c.mode == LockStep {
		return s.readReplies(ctx, p, LockStep)
	}
	c.out = c.appendEnvelope(c.out[:0], p)
	// A failed write shows when the answer is read, and an answer that is
	// already there says more than the failure.
	_ = c.write(c.out)
	ready, next := s.readReplies(ctx, p, Pipelining)
	if next == proceed {
		s.d.mode.confirm(Pipelining)
	}
	return ready, next
}

// A refusal is an answer to a command that was not good.
type refusal struct {
	command int
	code    int // 0: none
	text    string
}

// readReplies reads the replies to the envelope of p, which was written in that mode
// (in lock step it writes each command itself), and settles what is refused. Of
// several recipients those that are refused have their outcome, and the body is for
// the others.
//
// What a refusal inside a group leaves behind differs: after a refused RCPT the
// transaction stays open, the next MAIL is refused as nested, but its RCPT and
// DATA are taken, under the sender before. So the body may follow only where MAIL,
// a recipient and DATA were answered well; where DATA was taken though none of the
// recipients was, or not MAIL, and wherever an answer does not fit, the connection
// is closed; and after every other refusal RSET goes ahead of the next envelope.
func (s *session) readReplies(ctx context.Context, p *transaction, as Mode) (ready bool, _ step) {
	c := s.conn
	if c.needsReset && as == LockStep {
		c.needsReset, c.resetting = false, true
		_ = c.write([]byte(cmdReset))
	}
	if c.resetting {
		code, text, err := c.reply()
		if err == nil && code != 250 {
			err = fmt.Errorf("%w: RSET was answered %d %s", errOutOfSync, code, text)
		}
		if err != nil {
			return false, s.connectionBroken(ctx, p, as, err)
		}
		c.resetting = false
	}
	p.reset()
	var all refusal // of the whole: by MAIL, or by DATA
	mustClose := false
	for at := range len(p.messages) + 2 {
		command, l := rcpt, p.messages[0]
		switch at {
		case 0:
			command = mail
		case len(p.messages) + 1:
			command = data
		default:
			l = p.messages[at-1]
		}
		if as == LockStep {
			if command == data && len(p.accepted) == 0 {
				break
			}
			_ = c.write(s.encode(command, p, l))
		}
		code, text, err := c.reply()
		good := err == nil && (command < data && code/100 == 2 || command == data && code == 354)
		if err == nil && !good && code/100 != 4 && code/100 != 5 {
			err = fmt.Errorf("%w: %s was answered %d %s", errOutOfSync, commandNames[command], code, text)
		}
		if err != nil {
			if all.code == 0 && len(p.refused) == 0 {
				return false, s.connectionBroken(ctx, p, as, err)
			}
			mustClose = true // the refusal is known, and counts
			break
		}
		r := refusal{command, code, ""}
		if !good {
			r.text = string(text)
		}
		switch {
		case command == data:
			mustClose = good && (all.code != 0 || len(p.accepted) == 0)
			if !good && all.code == 0 && len(p.accepted) > 0 {
				all = r
			}
		case command == mail && !good:
			all = r
		case command == rcpt && all.code == 0:
			p.rcptReply(l, r, good)
		}
		if mustClose = mustClose || code == 421; mustClose || as == LockStep && all.code != 0 {
			break
		}
	}
	return s.afterEnvelope(p, as, all, mustClose)
}
func (s *session) encode(command int, p *transaction, l *driver.Message) []byte {
	c := s.conn
	switch command {
	case mail:
		c.out = c.extensions.appendMail(c.out[:0], p)
	case rcpt:
		c.out = appendRcpt(c.out[:0], l)
	default:
		c.out = append(c.out[:0], cmdData...)
	}
	return c.out
}

// afterEnvelope acts on the answers to an envelope. Some refusals are about the
// connection and not about the messages: those have them come again.
func (s *session) afterEnvelope(p *transaction, as Mode, all refusal, mustClose bool) (ready bool, _ step) {
	c := s.conn
	if text, about := p.refusedPipelining(all); as > LockStep && about {
		s.d.mode.refused(as, text)
		s.returnTransaction(p)
		return false, reconnect
	}
	switch {
	case all.code == 0 && !mustClose && len(p.accepted) > 0:
		p.keepAccepted()
		if len(p.postponed) > 0 {
			s.holdAgain(p.postponed)
		}
		if p.limit > 0 {
			c.maxRecipients = p.limit
		}
		s.failoverRefused(p)
		s.markUseful(354)
		return true, proceed
	case all.command != mail || all.code == 0:
	case all.code == 421 && s.closedWhileIdle():
		// Said, or meant, while there was nothing to send.
		s.returnTransaction(p)
		return false, reconnect
	case as == Grouped && all.code == 503:
		// "Bad sequence": the transaction before did not end where we think.
		// Behind a body, that is no judgement on this message.
		s.d.mode.connectionBroke(as, fmt.Errorf("MAIL was answered %d %s", all.code, all.text))
		s.returnTransaction(p)
		return false, reconnect
	case all.code == 421 && c.useful || all.code/100 == 4 && c.sent > 0:
		// The peer has had enough of this connection: many end it with 421 after
		// so many messages, and OpenSMTPD answers every further MAIL with 452.
		// Where the message is meant, a new connection will hear it again.
		s.holdAgain(p.messages)
		if !mustClose {
			c.quit()
		}
		return false, reconnect
	}
	return false, s.settleRefusals(p, all, mustClose)
}

// settleRefusals settles what is refused where no body follows; the others come again.
func (s *session) settleRefusals(p *transaction, all refusal, mustClose bool) step {
	c := s.conn
	end := p.settle(all)
	s.holdAgain(p.messages)
	s.markUseful(p.refused[0].code)
	served := c.useful
	c.useful = true
	s.failoverRefused(p)
	if next := s.reportRefusals(p.refused); next != proceed {
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

// failover lets another relay of the channel have a message that this one refused
// for now, where the queue knows one and finds the refusal to be about the relay.
func (s *session) failover(r refused) bool {
	return verdictOf(r.code) == driver.Temporary && s.queue.Failover(r.message, s.outcomeOf(r.refusal, time.Now()))
}

func (s *session) outcomeOf(r refusal, at time.Time) driver.Outcome {
	return driver.Outcome{Verdict: verdictOf(r.code), Code: r.code, Text: r.text, Relay: s.conn.relay, At: at}
}

// connectionBroken acts on a connection that broke, or fell out of step, before any byte
// of the body was written: the messages go back.
func (s *session) connectionBroken(ctx context.Context, p *transaction, as Mode, err error) step {
	c := s.conn
	s.returnTransaction(p)
	if ctx.Err() != nil {
		return finished
	}
	if s.closedWhileIdle() || s.d.mode.connectionBroke(as, err) || c.useful {
		return reconnect
	}
	s.err = fmt.Errorf("connection to %s lost before a body: %w", c.relay, err)
	return failed
}
