package smtp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A step determines how the session continues.
type step uint8

const (
	proceed                step = iota // with this connection
	reconnect                          // with a new connection
	disconnectUntilMessage             // without a connection until there is a message
	finished                           // ends: nothing to send, or ctx has ended
	failed                             // ends with session.err
)

// A session is one call of Serve: its open connection and the messages that it holds.
type session struct {
	d     *Driver
	queue driver.Queue
	conn  *conn
	held  []*driver.Message // taken from the queue, nothing of them was sent
	out   []byte            // write buffer between connections
	err   error             // for step failed

	transactions    [2]transaction // the one whose body is being sent, and the next one
	nextTransaction int            // index of the next one

	reconnected bool // an idle connection was replaced, and the new one has not been useful yet
}

// markUseful notes a reply about a message.
func (s *session) markUseful(code int) {
	if code != 421 {
		s.conn.idled, s.reconnected = false, false
	}
}

// closedWhileIdle reports whether a failure was probably caused by an idle connection that
// the peer had closed, so that a new connection helps. It never does so twice in a row.
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
		message, next := s.take(ctx)
		if message == nil {
			s.conn.quit()
			return next
		}
		if next := s.send(ctx, message); next != proceed {
			s.conn.close()
			return next
		}
		if limit := s.d.cfg.MaxMessages; limit > 0 && s.conn.sent >= limit {
			s.conn.quit()
			return reconnect
		}
	}
}

// take waits for a message, for as long as an idle connection may stay open.
func (s *session) take(ctx context.Context) (*driver.Message, step) {
	if len(s.held) > 0 {
		message := s.held[0]
		s.held = s.held[1:]
		return message, proceed
	}
	if ctx.Err() != nil {
		return nil, finished
	}
	message, err := s.queue.Next(ctx, false)
	if message == nil && err == nil {
		idle, cancel := context.WithTimeout(ctx, s.d.cfg.IdleTimeout)
		message, err = s.queue.Next(idle, true)
		tired := idle.Err() != nil
		cancel()
		s.conn.idled = true
		if message == nil && tired && ctx.Err() == nil {
			return nil, disconnectUntilMessage
		}
	}
	switch {
	case message != nil:
		return message, proceed
	case err != nil && ctx.Err() == nil:
		s.err = err
		return nil, failed
	}
	return nil, finished
}

// send sends a message, and with it every message that can share its transaction or be
// pipelined after it without a pause.
func (s *session) send(ctx context.Context, message *driver.Message) step {
	if why := s.conn.extensions.unsendable(message); why != "" {
		return s.settle(message, driver.Permanent, 0, why)
	}
	tx := s.newTransaction(message)
	ready, next := s.envelope(ctx, tx)
	for next == proceed && ready {
		tx, ready, next = s.body(ctx, tx)
	}
	return next
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// nextTransactionFor returns the transaction whose envelope is sent with the body that is
// about to be written, or nil.
func (s *session) nextTransactionFor(ctx context.Context) (*transaction, error) {
	c := s.conn
	if c.mode < Grouped || ended(ctx) {
		return nil, nil
	}
	if limit := s.d.cfg.MaxMessages; limit > 0 && c.sent+1 >= limit {
		return nil, nil
	}
	var message *driver.Message
	var err error
	if len(s.held) > 0 {
		message, s.held = s.held[0], s.held[1:]
	} else if message, err = s.queue.Next(ctx, false); message == nil {
		return nil, unlessEnded(ctx, err)
	}
	if c.extensions.unsendable(message) != "" {
		s.held = slices.Insert(s.held, 0, message) // settled after this body
		return nil, unlessEnded(ctx, err)
	}
	return s.newTransaction(message), unlessEnded(ctx, err)
}

// body writes the body of tx, whose envelope was answered with 354, and with it the
// envelope of the next transaction if there is one. It returns that transaction and whether
// its body may follow.
func (s *session) body(ctx context.Context, tx *transaction) (next *transaction, ready bool, _ step) {
	c := s.conn
	next, err := s.nextTransactionFor(ctx)
	if err != nil || ctx.Err() != nil {
		s.returnTransaction(tx)
		s.returnTransaction(next)
		return nil, false, s.fail(ctx, err)
	}
	s.useIndividual(tx) // the other recipients may have been refused
	message := tx.message()
	enclosed := message.Attachments
	c.out = appendBody(c.out[:0], message)
	before := len(c.out)
	c.out = append(c.out, finalDot...)
	bodyLen := len(c.out) + len(enclosed)
	if next != nil {
		c.out = c.appendEnvelope(c.out, next)
	}
	if !s.release(tx) {
		// After 354, the only way to withdraw the message is to close the connection.
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
		outcome.Verdict = driver.Temporary // it is about the pipelining and not about the message
	}
	if err := s.report(tx, outcome); err != nil {
		s.returnTransaction(next)
		s.err = fmt.Errorf("cannot record the outcome: %w", err)
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
		s.err = fmt.Errorf("the connection to %s was lost: %w", c.relay, lost)
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

// outcomeOfBody returns the outcome for the reply to a body, or for its absence. whole is
// true if the final dot was written. An error means that the connection can no longer be used;
// the outcome is then Lost.
func (c *conn) outcomeOfBody(code int, text []byte, err error, whole bool) (driver.Outcome, error) {
	o := driver.Outcome{Code: code, Relay: c.relay, At: time.Now()}
	switch {
	case err != nil:
		o.Verdict, o.Code = driver.Lost, 0
		o.Text = string(driver.AppendText(nil, fmt.Appendf(nil, "the connection was lost after the body was started: %v", err), maxReplyText))
		return o, err
	case code/100 == 2 && whole:
		o.Verdict, o.Text = driver.Accepted, c.textOf(text)
		return o, nil
	case code/100 == 4 || code/100 == 5:
		o.Verdict, o.Text = verdictOf(code), string(text)
		return o, nil
	}
	o.Verdict = driver.Lost
	o.Text = string(driver.AppendText(nil, append([]byte("unexpected reply to the body: "), text...), maxReplyText))
	return o, fmt.Errorf("%w: unexpected reply to a body: %d", errOutOfSync, code)
}

var errOutOfSync = errors.New("the session is out of sync with the peer")

func verdictOf(code int) driver.Verdict {
	if code/100 == 5 {
		return driver.Permanent
	}
	return driver.Temporary
}

// settle reports the outcome of a message of which only the envelope was sent.
func (s *session) settle(message *driver.Message, v driver.Verdict, code int, text string) step {
	if !s.queue.Release(message) {
		return proceed
	}
	err := s.queue.Report(message, driver.Outcome{Verdict: v, Code: code, Text: text, Relay: s.conn.relay, At: time.Now()})
	if err != nil {
		s.err = fmt.Errorf("cannot record the outcome: %w", err)
		return failed
	}
	return proceed
}

// fail ends the session with err, or without an error if ctx has ended.
func (s *session) fail(ctx context.Context, err error) step {
	if err == nil || ctx.Err() != nil {
		return finished
	}
	s.err = err
	return failed
}

// endedBy421 ends the session if the peer replied 421 on a connection that has not been
// useful yet: the caller then pauses.
func (s *session) endedBy421(code int, text string) step {
	s.err = fmt.Errorf("%s closed the connection: %d %s", s.conn.relay, code, text)
	return failed
}
