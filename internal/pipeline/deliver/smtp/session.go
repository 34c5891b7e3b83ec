package smtp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A step says how to go on after a part of the conversation.
type step uint8

const (
	goOn   step = iota // with this connection
	again              // with a new connection
	rest               // without a connection until there is a message
	over               // not at all: nothing to send, or ctx ended
	failed             // not at all: session.err says why
)

// A session is one call of Serve: what it has in hand and its open connection.
type session struct {
	d     *Driver
	queue driver.Queue
	conn  *conn
	hand  []*driver.Message // taken from the queue, nothing of them on the wire
	out   []byte            // write buffer between connections
	err   error             // with failed

	parcels [2]parcel // one whose body is on its way, and the one behind it
	turn    int       // which of them is next

	revived bool // an idle connection was replaced, and the new one was of no use yet
}

// useful notes an answer that was about a message.
func (s *session) useful(code int) {
	if code != 421 {
		s.conn.rested, s.revived = false, false
	}
}

// stale reports whether what just happened is owed to a connection that stood
// idle, which a new connection puts right. It is not believed twice in a row.
func (s *session) stale() bool {
	if !s.conn.rested || s.revived {
		return false
	}
	s.revived = true
	return true
}

// run sends messages over the open connection until it ends, and closes it.
func (s *session) run(ctx context.Context) step {
	for {
		l, next := s.take(ctx)
		if l == nil {
			s.conn.quit()
			return next
		}
		if next := s.send(ctx, l); next != goOn {
			s.conn.close()
			return next
		}
		if limit := s.d.cfg.MaxMessages; limit > 0 && s.conn.sent >= limit {
			s.conn.quit()
			return again
		}
	}
}

// take waits for a message, as long as an idle connection may stay open.
func (s *session) take(ctx context.Context) (*driver.Message, step) {
	if len(s.hand) > 0 {
		l := s.hand[0]
		s.hand = s.hand[1:]
		return l, goOn
	}
	if ctx.Err() != nil {
		return nil, over
	}
	l, err := s.queue.Next(ctx, false)
	if l == nil && err == nil {
		idle, cancel := context.WithTimeout(ctx, s.d.cfg.IdleTimeout)
		l, err = s.queue.Next(idle, true)
		tired := idle.Err() != nil
		cancel()
		s.conn.rested = true
		if l == nil && tired && ctx.Err() == nil {
			return nil, rest
		}
	}
	switch {
	case l != nil:
		return l, goOn
	case err != nil && ctx.Err() == nil:
		s.err = err
		return nil, failed
	}
	return nil, over
}

// send brings l to its end, and with it every message that could go with it or be
// grouped behind it without a pause.
func (s *session) send(ctx context.Context, l *driver.Message) step {
	if why := s.conn.can.unsendable(l); why != "" {
		return s.settle(l, driver.Permanent, 0, why)
	}
	p := s.pack(l)
	ready, next := s.envelope(ctx, p)
	for next == goOn && ready {
		p, ready, next = s.body(ctx, p)
	}
	return next
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// behind returns a parcel whose envelope may travel with the body that is about
// to be written, or nil.
func (s *session) behind(ctx context.Context) (*parcel, error) {
	c := s.conn
	if c.mode < Grouped || ended(ctx) {
		return nil, nil
	}
	if limit := s.d.cfg.MaxMessages; limit > 0 && c.sent+1 >= limit {
		return nil, nil
	}
	var l *driver.Message
	var err error
	if len(s.hand) > 0 {
		l, s.hand = s.hand[0], s.hand[1:]
	} else if l, err = s.queue.Next(ctx, false); l == nil {
		return nil, whole(ctx, err)
	}
	if c.can.unsendable(l) != "" {
		s.hand = slices.Insert(s.hand, 0, l) // settled when this body is done
		return nil, whole(ctx, err)
	}
	return s.pack(l), whole(ctx, err)
}

// body writes the body of p, whose envelope was answered with 354, and with it
// the envelope of the next parcel where there is one. It returns that parcel and
// whether its own body may follow.
func (s *session) body(ctx context.Context, p *parcel) (next *parcel, ready bool, _ step) {
	c := s.conn
	next, err := s.behind(ctx)
	if err != nil || ctx.Err() != nil {
		s.giveBack(p)
		s.giveBack(next)
		return nil, false, s.fail(ctx, err)
	}
	s.settleAlone(p) // the others may have been refused
	message := p.message()
	enclosed := message.Attachments
	c.out = appendBody(c.out[:0], message)
	before := len(c.out)
	c.out = append(c.out, finalDot...)
	bodyLen := len(c.out) + len(enclosed)
	if next != nil {
		c.out = c.appendEnvelope(c.out, next)
	}
	if !s.release(p) {
		// After 354 there is no way back but to hang up.
		s.giveBack(next)
		return nil, false, again
	}
	c.wire.allow(time.Now().Add(s.d.cfg.SendTimeout), true)
	wrote, writeErr := c.writeAround(before, enclosed)
	code, text, err := c.reply()
	if err != nil && writeErr != nil {
		err = writeErr // the cause
	}
	outcome, lost := c.judge(code, text, err, wrote >= bodyLen)
	misgrouped := next != nil && outcome.Verdict != driver.Accepted && lost == nil && aboutGrouping(outcome.Text)
	if misgrouped {
		outcome.Verdict = driver.Temporary // that is about us and not about the message
	}
	if err := s.report(p, outcome); err != nil {
		s.giveBack(next)
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return nil, false, failed
	}
	c.wire.allow(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
	if lost != nil {
		if next != nil {
			s.d.ladder.broke(Grouped, lost)
		}
		s.giveBack(next)
		s.err = fmt.Errorf("connection to %s lost: %w", c.relay, lost)
		return nil, false, failed
	}
	served := c.served
	c.sent, c.served = c.sent+1, true
	s.useful(code)
	switch {
	case code == 421 && !served:
		s.giveBack(next)
		return nil, false, s.endedBy(code, outcome.Text)
	case misgrouped:
		s.d.ladder.refused(Grouped, outcome.Text)
		fallthrough
	case code == 421, writeErr != nil:
		s.giveBack(next)
		return nil, false, again
	case next == nil:
		c.dirty = c.dirty || outcome.Verdict != driver.Accepted
		return nil, false, goOn
	case ctx.Err() != nil:
		s.giveBack(next)
		return nil, false, over
	}
	ready, then := s.answers(ctx, next, Grouped)
	if then == goOn {
		s.d.ladder.prove(Grouped)
	}
	return next, ready, then
}

// judge makes an outcome of the reply to a body, or of its absence. whole says
// that the final dot was written. An error means that the connection is of no
// more use, and the message is lost.
func (c *conn) judge(code int, text []byte, err error, whole bool) (driver.Outcome, error) {
	o := driver.Outcome{Code: code, Relay: c.relay, At: time.Now()}
	switch {
	case err != nil:
		o.Verdict, o.Code = driver.Lost, 0
		o.Text = string(driver.AppendText(nil, fmt.Appendf(nil, "the connection broke after the body was begun: %v", err), maxReplyText))
		return o, err
	case code/100 == 2 && whole:
		o.Verdict, o.Text = driver.Accepted, c.textOf(text)
		return o, nil
	case code/100 == 4 || code/100 == 5:
		o.Verdict, o.Text = verdictOf(code), string(text)
		return o, nil
	}
	o.Verdict = driver.Lost
	o.Text = string(driver.AppendText(nil, append([]byte("the body was answered out of step: "), text...), maxReplyText))
	return o, fmt.Errorf("%w: a body was answered %d", errOutOfStep, code)
}

var errOutOfStep = errors.New("the peer and this end disagree about the state of the session")

func verdictOf(code int) driver.Verdict {
	if code/100 == 5 {
		return driver.Permanent
	}
	return driver.Temporary
}

// settle reports an outcome of a message of which nothing was written but its
// envelope.
func (s *session) settle(l *driver.Message, v driver.Verdict, code int, text string) step {
	if !s.queue.Release(l) {
		return goOn
	}
	err := s.queue.Report(l, driver.Outcome{Verdict: v, Code: code, Text: text, Relay: s.conn.relay, At: time.Now()})
	if err != nil {
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return failed
	}
	return goOn
}

// fail ends the session with err, or quietly where ctx has ended.
func (s *session) fail(ctx context.Context, err error) step {
	if err == nil || ctx.Err() != nil {
		return over
	}
	s.err = err
	return failed
}

// endedBy ends the session where the peer says 421 on a connection that was of no
// use yet: it needs a pause, which is the caller's to make.
func (s *session) endedBy(code int, text string) step {
	s.err = fmt.Errorf("%s ended the connection: %d %s", s.conn.relay, code, text)
	return failed
}
