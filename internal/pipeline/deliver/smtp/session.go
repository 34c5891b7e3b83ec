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
	proceed                step = iota // with this connection
	reconnect                          // with a new connection
	disconnectUntilMessage             // without a connection until there is a message
	finished                           // not at all: nothing to send, or ctx ended
	failed                             // not at all: session.err says why
)

// A session is one call of Serve: what it has in hand and its open connection.
type session struct {
	d     *Driver
	queue driver.Queue
	conn  *conn
	held  []*driver.Message // taken from the queue, nothing of them on the wire
	out   []byte            // write buffer between connections
	err   error             // with failed

	transactions    [2]transaction // one whose body is on its way, and the one behind it
	nextTransaction int            // which of them is next

	reconnected bool // an idle connection was replaced, and the new one was of no use yet
}

// markUseful notes an answer that was about a message.
func (s *session) markUseful(code int) {
	if code != 421 {
		s.conn.idled, s.reconnected = false, false
	}
}

// closedWhileIdle reports whether what just happened is owed to a connection that stood
// idle, which a new connection puts right. It is not believed twice in a row.
func (s *session) closedWhileIdle() bool {
	if !s.conn.idled || s.reconnected {
		return false
	}
	s.reconnected = true
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
		if next := s.send(ctx, l); next != proceed {
			s.conn.close()
			return next
		}
		if limit := s.d.cfg.MaxMessages; limit > 0 && s.conn.sent >= limit {
			s.conn.quit()
			return reconnect
		}
	}
}

// take waits for a message, as long as an idle connection may stay open.
func (s *session) take(ctx context.Context) (*driver.Message, step) {
	if len(s.held) > 0 {
		l := s.held[0]
		s.held = s.held[1:]
		return l, proceed
	}
	if ctx.Err() != nil {
		return nil, finished
	}
	l, err := s.queue.Next(ctx, false)
	if l == nil && err == nil {
		idle, cancel := context.WithTimeout(ctx, s.d.cfg.IdleTimeout)
		l, err = s.queue.Next(idle, true)
		tired := idle.Err() != nil
		cancel()
		s.conn.idled = true
		if l == nil && tired && ctx.Err() == nil {
			return nil, disconnectUntilMessage
		}
	}
	switch {
	case l != nil:
		return l, proceed
	case err != nil && ctx.Err() == nil:
		s.err = err
		return nil, failed
	}
	return nil, finished
}

// send brings l to its end, and with it every message that could go with it or be
// grouped behind it without a pause.
func (s *session) send(ctx context.Context, l *driver.Message) step {
	if why := s.conn.extensions.unsendable(l); why != "" {
		return s.settle(l, driver.Permanent, 0, why)
	}
	p := s.newTransaction(l)
	ready, next := s.envelope(ctx, p)
	for next == proceed && ready {
		p, ready, next = s.body(ctx, p)
	}
	return next
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// nextTransactionFor returns a parcel whose envelope may travel with the body that is about
// to be written, or nil.
func (s *session) nextTransactionFor(ctx context.Context) (*transaction, error) {
	c := s.conn
	if c.mode < Grouped || ended(ctx) {
		return nil, nil
	}
	if limit := s.d.cfg.MaxMessages; limit > 0 && c.sent+1 >= limit {
		return nil, nil
	}
	var l *driver.Message
	var err error
	if len(s.held) > 0 {
		l, s.held = s.held[0], s.held[1:]
	} else if l, err = s.queue.Next(ctx, false); l == nil {
		return nil, unlessEnded(ctx, err)
	}
	if c.extensions.unsendable(l) != "" {
		s.held = slices.Insert(s.held, 0, l) // settled when this body is done
		return nil, unlessEnded(ctx, err)
	}
	return s.newTransaction(l), unlessEnded(ctx, err)
}

// body writes the body of p, whose envelope was answered with 354, and with it
// the envelope of the next parcel where there is one. It returns that parcel and
// whether its own body may follow.
func (s *session) body(ctx context.Context, p *transaction) (next *transaction, ready bool, _ step) {
	c := s.conn
	next, err := s.nextTransactionFor(ctx)
	if err != nil || ctx.Err() != nil {
		s.returnTransaction(p)
		s.returnTransaction(next)
		return nil, false, s.fail(ctx, err)
	}
	s.useIndividual(p) // the others may have been refused
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
		s.returnTransaction(next)
		return nil, false, reconnect
	}
	c.socket.setDeadline(time.Now().Add(s.d.cfg.SendTimeout), true)
	wrote, writeErr := c.writeAround(before, enclosed)
	code, text, err := c.reply()
	if err != nil && writeErr != nil {
		err = writeErr // the cause
	}
	outcome, lost := c.outcomeOfBody(code, text, err, wrote >= bodyLen)
	misgrouped := next != nil && outcome.Verdict != driver.Accepted && lost == nil && aboutPipelining(outcome.Text)
	if misgrouped {
		outcome.Verdict = driver.Temporary // that is about us and not about the message
	}
	if err := s.report(p, outcome); err != nil {
		s.returnTransaction(next)
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return nil, false, failed
	}
	c.socket.setDeadline(time.Now().Add(s.d.cfg.CommandTimeout), false)
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
	if lost != nil {
		if next != nil {
			s.d.mode.connectionBroke(Grouped, lost)
		}
		s.returnTransaction(next)
		s.err = fmt.Errorf("connection to %s lost: %w", c.relay, lost)
		return nil, false, failed
	}
	served := c.useful
	c.sent, c.useful = c.sent+1, true
	s.markUseful(code)
	switch {
	case code == 421 && !served:
		s.returnTransaction(next)
		return nil, false, s.endedBy421(code, outcome.Text)
	case misgrouped:
		s.d.mode.refused(Grouped, outcome.Text)
		fallthrough
	case code == 421, writeErr != nil:
		s.returnTransaction(next)
		return nil, false, reconnect
	case next == nil:
		c.needsReset = c.needsReset || outcome.Verdict != driver.Accepted
		return nil, false, proceed
	case ctx.Err() != nil:
		s.returnTransaction(next)
		return nil, false, finished
	}
	ready, then := s.readReplies(ctx, next, Grouped)
	if then == proceed {
		s.d.mode.confirm(Grouped)
	}
	return next, ready, then
}

// outcomeOfBody makes an outcome of the reply to a body, or of its absence. whole says
// that the final dot was written. An error means that the connection is of no
// more use, and the message is lost.
func (c *conn) outcomeOfBody(code int, text []byte, err error, whole bool) (driver.Outcome, error) {
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
	return o, fmt.Errorf("%w: a body was answered %d", errOutOfSync, code)
}

var errOutOfSync = errors.New("the peer and this end disagree about the state of the session")

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
		return proceed
	}
	err := s.queue.Report(l, driver.Outcome{Verdict: v, Code: code, Text: text, Relay: s.conn.relay, At: time.Now()})
	if err != nil {
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return failed
	}
	return proceed
}

// fail ends the session with err, or quietly where ctx has ended.
func (s *session) fail(ctx context.Context, err error) step {
	if err == nil || ctx.Err() != nil {
		return finished
	}
	s.err = err
	return failed
}

// endedBy421 ends the session where the peer says 421 on a connection that was of no
// use yet: it needs a pause, which is the caller's to make.
func (s *session) endedBy421(code int, text string) step {
	s.err = fmt.Errorf("%s ended the connection: %d %s", s.conn.relay, code, text)
	return failed
}
