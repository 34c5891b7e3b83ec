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
func (s *session) envelope(ctx context.Context, p *parcel) (bool, step) {
	c := s.conn
	c.wire.allow(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if c.mode == LockStep {
		return s.answers(ctx, p, LockStep)
	}
	c.out = c.appendEnvelope(c.out[:0], p)
	// A failed write shows when the answer is read, and an answer that is
	// already there says more than the failure.
	_ = c.write(c.out)
	ready, next := s.answers(ctx, p, Pipelining)
	if next == goOn {
		s.d.ladder.prove(Pipelining)
	}
	return ready, next
}

// A refusal is an answer to a command that was not good.
type refusal struct {
	command int
	code    int // 0: none
	text    string
}

// answers reads the replies to the envelope of p, which was written in that mode
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
func (s *session) answers(ctx context.Context, p *parcel, as Mode) (ready bool, _ step) {
	c := s.conn
	if c.dirty && as == LockStep {
		c.dirty, c.resetting = false, true
		_ = c.write([]byte(cmdReset))
	}
	if c.resetting {
		code, text, err := c.reply()
		if err == nil && code != 250 {
			err = fmt.Errorf("%w: RSET was answered %d %s", errOutOfStep, code, text)
		}
		if err != nil {
			return false, s.dropped(ctx, p, as, err)
		}
		c.resetting = false
	}
	p.begin()
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
			if command == data && len(p.taken) == 0 {
				break
			}
			_ = c.write(s.command(command, p, l))
		}
		code, text, err := c.reply()
		good := err == nil && (command < data && code/100 == 2 || command == data && code == 354)
		if err == nil && !good && code/100 != 4 && code/100 != 5 {
			err = fmt.Errorf("%w: %s was answered %d %s", errOutOfStep, commandNames[command], code, text)
		}
		if err != nil {
			if all.code == 0 && len(p.refused) == 0 {
				return false, s.dropped(ctx, p, as, err)
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
			mustClose = good && (all.code != 0 || len(p.taken) == 0)
			if !good && all.code == 0 && len(p.taken) > 0 {
				all = r
			}
		case command == mail && !good:
			all = r
		case command == rcpt && all.code == 0:
			p.answered(l, r, good)
		}
		if mustClose = mustClose || code == 421; mustClose || as == LockStep && all.code != 0 {
			break
		}
	}
	return s.concluded(p, as, all, mustClose)
}
func (s *session) command(command int, p *parcel, l *driver.Message) []byte {
	c := s.conn
	switch command {
	case mail:
		c.out = c.can.appendMail(c.out[:0], p)
	case rcpt:
		c.out = appendRcpt(c.out[:0], l)
	default:
		c.out = append(c.out[:0], cmdData...)
	}
	return c.out
}

// concluded acts on the answers to an envelope. Some refusals are about the
// connection and not about the messages: those have them come again.
func (s *session) concluded(p *parcel, as Mode, all refusal, mustClose bool) (ready bool, _ step) {
	c := s.conn
	if text, about := p.aboutGrouping(all); as > LockStep && about {
		s.d.ladder.refused(as, text)
		s.giveBack(p)
		return false, again
	}
	switch {
	case all.code == 0 && !mustClose && len(p.taken) > 0:
		p.conclude()
		if len(p.later) > 0 {
			s.keep(p.later)
		}
		if p.limit > 0 {
			c.most = p.limit
		}
		s.passOn(p)
		s.useful(354)
		return true, goOn
	case all.command != mail || all.code == 0:
	case all.code == 421 && s.stale():
		// Said, or meant, while there was nothing to send.
		s.giveBack(p)
		return false, again
	case as == Grouped && all.code == 503:
		// "Bad sequence": the transaction before did not end where we think.
		// Behind a body, that is no judgement on this message.
		s.d.ladder.broke(as, fmt.Errorf("MAIL was answered %d %s", all.code, all.text))
		s.giveBack(p)
		return false, again
	case all.code == 421 && c.served || all.code/100 == 4 && c.sent > 0:
		// The peer has had enough of this connection: many end it with 421 after
		// so many messages, and OpenSMTPD answers every further MAIL with 452.
		// Where the message is meant, a new connection will hear it again.
		s.keep(p.messages)
		if !mustClose {
			c.quit()
		}
		return false, again
	}
	return false, s.refused(p, all, mustClose)
}

// refused settles what is refused where no body follows; the others come again.
func (s *session) refused(p *parcel, all refusal, mustClose bool) step {
	c := s.conn
	end := p.refuse(all)
	s.keep(p.messages)
	s.useful(p.refused[0].code)
	served := c.served
	c.served = true
	s.passOn(p)
	if next := s.settleRefused(p.refused); next != goOn {
		return next
	}
	if end.code == 421 && !served {
		return s.endedBy(end.code, end.text)
	}
	if mustClose {
		return again
	}
	c.dirty = true
	return goOn
}

// elsewhere lets another relay of the channel have a message that this one refused
// for now, where the queue knows one and finds the refusal to be about the relay.
func (s *session) elsewhere(r refused) bool {
	return verdictOf(r.code) == driver.Temporary && s.queue.Failover(r.message, s.outcomeOf(r.refusal, time.Now()))
}

func (s *session) outcomeOf(r refusal, at time.Time) driver.Outcome {
	return driver.Outcome{Verdict: verdictOf(r.code), Code: r.code, Text: r.text, Relay: s.conn.relay, At: at}
}

// dropped acts on a connection that broke, or fell out of step, before any byte
// of the body was written: the messages go back.
func (s *session) dropped(ctx context.Context, p *parcel, as Mode, err error) step {
	c := s.conn
	s.giveBack(p)
	if ctx.Err() != nil {
		return over
	}
	if s.stale() || s.d.ladder.broke(as, err) || c.served {
		return again
	}
	s.err = fmt.Errorf("connection to %s lost before a body: %w", c.relay, err)
	return failed
}
