package smtp

import (
	"context"
	"fmt"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// The commands of an envelope, in order.
const (
	mail = iota
	rcpt
	data
	commands
)

var commandNames = [commands]string{"MAIL", "RCPT", "DATA"}

// envelope sends the envelope of l by itself and reads the answers. It reports
// whether the body may follow.
func (s *session) envelope(ctx context.Context, l *fanfare.Letter) (bool, step) {
	c := s.conn
	c.wire.allow(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if c.mode == LockStep {
		return s.answers(ctx, l, LockStep)
	}
	c.out = c.appendEnvelope(c.out[:0], l)
	// A failed write shows when the answer is read, and an answer that is
	// already there says more than the failure.
	_ = c.write(c.out)
	ready, next := s.answers(ctx, l, Pipelining)
	if next == goOn {
		s.d.ladder.prove(Pipelining)
	}
	return ready, next
}

// A refusal is the first answer of an envelope that was not good.
type refusal struct {
	command int
	code    int // 0: none
	text    string
}

// answers reads the replies to the envelope of l, which was written in that
// mode (in lock step it writes each command itself), and settles a refusal.
//
// What a refusal inside a group leaves behind differs: after a refused RCPT the
// transaction stays open, the next MAIL is refused as nested, but its RCPT and
// DATA are taken, under the sender before. So the body may follow only where
// all three answers were good; where DATA was taken though another command was
// refused, and wherever an answer does not fit, the connection is closed; and
// after every other refusal RSET goes ahead of the next envelope.
func (s *session) answers(ctx context.Context, l *fanfare.Letter, as Mode) (ready bool, _ step) {
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
			return false, s.dropped(ctx, l, as, err)
		}
		c.resetting = false
	}
	var first refusal
	mustClose := false
	for command := range commands {
		if as == LockStep {
			_ = c.write(s.command(command, l))
		}
		code, text, err := c.reply()
		good := err == nil && (command < data && code/100 == 2 || command == data && code == 354)
		if err == nil && !good && code/100 != 4 && code/100 != 5 {
			err = fmt.Errorf("%w: %s was answered %d %s", errOutOfStep, commandNames[command], code, text)
		}
		if err != nil {
			if first.code == 0 {
				return false, s.dropped(ctx, l, as, err)
			}
			mustClose = true // the refusal is known, and counts
			break
		}
		if good {
			mustClose = first.code != 0 && command == data
			continue
		}
		if first.code == 0 {
			first = refusal{command, code, string(text)}
		}
		if mustClose = code == 421; mustClose || as == LockStep {
			break
		}
	}
	if first.code == 0 {
		s.useful(354)
		return true, goOn
	}
	return false, s.refused(l, as, first, mustClose)
}

func (s *session) command(command int, l *fanfare.Letter) []byte {
	c := s.conn
	switch command {
	case mail:
		c.out = c.can.appendMail(c.out[:0], l)
	case rcpt:
		c.out = appendRcpt(c.out[:0], l)
	default:
		c.out = append(c.out[:0], cmdData...)
	}
	return c.out
}

// refused acts on a refused envelope. Some refusals are about the connection
// and not about the letter: those return it.
func (s *session) refused(l *fanfare.Letter, as Mode, r refusal, mustClose bool) step {
	c := s.conn
	switch {
	case r.code == 421 && r.command == mail && s.stale():
		// Said, or meant, while there was nothing to send.
		s.desk.Return(l)
		return again
	case as > LockStep && aboutGrouping(r.text):
		s.d.ladder.refused(as, fmt.Sprintf("%d %s", r.code, r.text))
		s.desk.Return(l)
		return again
	case as == Grouped && r.command == mail && r.code == 503:
		// "Bad sequence": the transaction before did not end where we think.
		// Behind a body, that is no judgement on this letter.
		s.d.ladder.broke(as, fmt.Errorf("MAIL was answered %d %s", r.code, r.text))
		s.desk.Return(l)
		return again
	case r.command == mail && (r.code == 421 && c.served || r.code/100 == 4 && c.sent > 0):
		// The peer has had enough of this connection: many end it with 421 after
		// so many messages, and OpenSMTPD answers every further MAIL with 452.
		// Where the letter is meant, a new connection will hear it again.
		s.hand = l
		if !mustClose {
			c.quit()
		}
		return again
	}
	s.useful(r.code)
	served := c.served
	c.served = true
	if next := s.settle(l, verdictOf(r.code), r.code, r.text); next != goOn {
		return next
	}
	if r.code == 421 && !served {
		return s.endedBy(r.code, r.text)
	}
	if mustClose {
		return again
	}
	c.dirty = true
	return goOn
}

// dropped acts on a connection that broke, or fell out of step, before any byte
// of the letter's body was written: the letter goes back.
func (s *session) dropped(ctx context.Context, l *fanfare.Letter, as Mode, err error) step {
	c := s.conn
	s.desk.Return(l)
	if ctx.Err() != nil {
		return over
	}
	if s.stale() || s.d.ladder.broke(as, err) || c.served {
		return again
	}
	s.err = fmt.Errorf("connection to %s lost before a body: %w", c.relay, err)
	return failed
}
