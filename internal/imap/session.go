package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A session is one connection.
type session struct {
	server  *Server
	conn    net.Conn // below TLS
	stream  net.Conn // TLS, or conn
	peer    netip.Addr
	network netip.Prefix
	counted mailbox.AccountID // for the limit of connections; 0 before the login
	ctx     context.Context
	cancel  context.CancelFunc

	in       input
	reserved int64  // bytes of the memory for large messages
	command  []byte // kept between commands
	implicit bool   // TLS begins at once
	secure   bool   // TLS
	over     bool   // ends after the response
	failures int    // BAD responses since the last success; failed logins
	refused  int    // failed logins

	account    mailbox.Account // after the login
	loggedIn   bool
	enabled    []string // by ENABLE
	rev2       bool
	utf8       bool // UTF-8 in names and quoted strings
	condstore  bool // MODSEQ in FETCH responses
	qresync    bool
	compressed bool

	// mu guards out and selected while idling is true. Otherwise only the goroutine of the session uses out and selected.
	mu       sync.Mutex
	out      []byte
	writeErr error
	selected *selected
	idling   atomic.Bool
	pushing  atomic.Bool
	lost     atomic.Bool // the selected mailbox was deleted during IDLE
	barred   atomic.Bool // the account was disabled or removed

	accessSeen int64 // Server.accessSeen before the command

	deadlines sync.Mutex
	ends      time.Time // deadline of the login; zero after it
	reading   bool      // in the middle of a command
}

// status is a tagged response, or an untagged one without data.
type status struct {
	kind string // OK, NO, BAD
	code string // response code without brackets; ""
	text string
	// keep says that changes are not reported before the response, because the command has changed or left the selected mailbox.
	keep bool
}

func ok(format string, args ...any) status {
	return status{kind: "OK", text: fmt.Sprintf(format, args...)}
}

func okCode(code, format string, args ...any) status {
	return status{kind: "OK", code: code, text: fmt.Sprintf(format, args...)}
}

func no(code, format string, args ...any) status {
	return status{kind: "NO", code: code, text: fmt.Sprintf(format, args...)}
}

func bad(format string, args ...any) status {
	return status{kind: "BAD", text: fmt.Sprintf(format, args...)}
}

func newSession(s *Server, conn net.Conn, peer netip.Addr, network netip.Prefix, implicit bool) *session {
	one := &session{server: s, conn: conn, peer: peer, network: network, implicit: implicit, ends: time.Now().Add(s.o.Limits.LoginTimeout)}
	one.ctx, one.cancel = context.WithCancel(s.ctx)
	one.use(deadlineConn{conn, one})
	return one
}

// use makes conn the connection of the session, and drops input that was read ahead.
func (s *session) use(conn net.Conn) {
	s.stream = conn
	s.in.from, s.in.r, s.in.w = conn, 0, 0
}

// deadlineConn is a connection whose reads and writes have deadlines.
type deadlineConn struct {
	net.Conn
	session *session
}

// Read reads until the current deadline of the session.
func (c deadlineConn) Read(p []byte) (int, error) {
	if err := c.session.setReadDeadline(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write writes in pieces, each of which has the deadline of a response.
func (c deadlineConn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), outputBytes)])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// setReadDeadline sets the deadline of the next bytes. While the server stops, and after the account was
// disabled, it is in the past unless a command is being received.
func (s *session) setReadDeadline() error {
	s.deadlines.Lock()
	defer s.deadlines.Unlock()
	until := time.Now().Add(s.server.o.Limits.IdleTimeout)
	switch {
	case s.reading:
		until = time.Now().Add(commandTimeout)
	case s.server.draining.Load() || s.barred.Load():
		until = pastDeadline
	}
	if !s.ends.IsZero() && s.ends.Before(until) {
		until = s.ends
	}
	return s.conn.SetReadDeadline(until)
}

// hurry ends the wait for a command.
func (s *session) hurry() {
	s.deadlines.Lock()
	defer s.deadlines.Unlock()
	if !s.reading {
		_ = s.conn.SetReadDeadline(pastDeadline) // an error means that the connection is closed
	}
}

func (s *session) cutOff() { _ = s.conn.Close() }

func (s *session) setReading(is bool) {
	s.deadlines.Lock()
	s.reading = is
	s.deadlines.Unlock()
}

// run executes commands until one side ends the session.
func (s *session) run() {
	defer func() { _ = s.stream.Close() }()
	defer s.cancel()
	defer s.unselect()
	defer s.release()
	defer func() {
		if p := recover(); p != nil {
			s.server.metrics.panics.Inc()
			s.server.o.Logger.Error("an IMAP session panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if s.implicit && !s.handshake() {
		return
	}
	s.untagged("OK [CAPABILITY %s] %s is ready", s.capabilities(), s.server.o.Name)
	for s.flush() == nil && !s.over {
		if !s.in.buffered() {
			s.releaseOutput()
		}
		raw, err := s.readCommand()
		switch {
		case err != nil && !s.endOfInput(err):
			return
		case err == nil && raw != nil:
			s.execute(raw)
		}
		s.release()
		if cap(s.command) > commandBytesKept {
			s.command = nil
		}
	}
	_ = s.flush()
	s.closeGracefully()
}

// closeGracefully closes the connection so that the last response arrives: closing it while input is unread would discard the response.
func (s *session) closeGracefully() {
	if tcp, isTCP := s.conn.(*net.TCPConn); isTCP && !s.secure && tcp.CloseWrite() == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(closeTimeout))
		var rest [512]byte
		for range 1000 {
			if _, err := s.conn.Read(rest[:]); err != nil {
				return
			}
		}
	}
}

// endOfInput ends the session after an error of its input, and reports whether a response is left to be sent.
func (s *session) endOfInput(err error) bool {
	s.over = true
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errLineTooLong), errors.Is(err, errTooMany):
		s.untagged("BAD %s: send at most %d bytes besides literals", err, s.maxLine())
		s.untagged("BYE the connection ends after an unreadable command")
	case errors.Is(err, errDiscard):
		s.untagged("BYE [TOOBIG] %s", err)
	case isNet && timeout.Timeout() && s.barred.Load():
		s.untagged("BYE the account was disabled or removed: ask the administrator")
	case isNet && timeout.Timeout() && s.server.draining.Load():
		s.untagged("BYE [UNAVAILABLE] %s is shutting down; connect again", s.server.o.Name)
	case isNet && timeout.Timeout() && !s.loggedIn:
		s.untagged("BYE the time for the login is over")
	case isNet && timeout.Timeout():
		s.untagged("BYE the connection was idle for too long")
	default:
		return false
	}
	return true
}

func (s *session) maxLine() int {
	if s.loggedIn {
		return maxLineBytes
	}
	return maxLineBytesBefore
}

var errDiscard = errors.New("the literal is too large")

// readCommand reads a command with its literals. It returns nil if the command was refused before it was complete.
func (s *session) readCommand() (raw []byte, err error) {
	if err := s.in.fill(); err != nil {
		return nil, err
	}
	s.setReading(true)
	defer s.setReading(false)
	raw = s.command[:0]
	lines, literals, from := 0, int64(0), 0
	limit := s.maxLine()
	var refusal *status
	defer func() { s.command = raw[:0] }()
	for n := 0; ; n++ {
		if raw, err = s.in.line(raw, from+limit-lines); err != nil {
			return nil, err
		}
		lines += len(raw) - from
		literal, is := syntax.LiteralAt(raw[from:])
		if !is {
			break
		}
		if n == maxLiterals {
			return nil, errTooMany
		}
		if refusal == nil {
			refusal = s.refuseLiteral(raw, literal, literals)
		}
		if refusal == nil && literal.Size > smallMessageBytes && s.reserve(literal.Size) != nil {
			answer := no("UNAVAILABLE", "%s", userText(errNoMemory))
			refusal = &answer
		}
		literals += literal.Size
		switch {
		case refusal != nil && literal.Sync:
			s.finish(raw, *refusal)
			return nil, nil
		case refusal != nil:
			if literals > maxDiscardBytes {
				return nil, errDiscard
			}
			if err := s.in.discard(literal.Size); err != nil {
				return nil, err
			}
			from = len(raw)
			continue
		case literal.Sync:
			s.out = append(s.out, "+ send the literal\r\n"...)
			if err := s.flush(); err != nil {
				return nil, err
			}
		}
		raw = append(raw, '\r', '\n')
		if raw, err = s.in.exactly(raw, literal.Size); err != nil {
			return nil, err
		}
		from = len(raw)
	}
	if refusal != nil {
		s.finish(raw, *refusal)
		return nil, nil
	}
	return raw, nil
}

// reserve waits for memory for a large message. release gives it back. A command that has some does not wait for more, because two of them could
// wait for each other.
func (s *session) reserve(n int64) error {
	n = min(n, s.server.o.Limits.LargeMessageBytes)
	if s.reserved > 0 {
		if !s.server.large.TryAcquire(n) {
			return errNoMemory
		}
		s.reserved += n
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, memoryWait)
	defer cancel()
	if err := s.server.large.Acquire(ctx, n); err != nil {
		return errNoMemory
	}
	s.reserved = n
	return nil
}

func (s *session) release() {
	if s.reserved > 0 {
		s.server.large.Release(s.reserved)
		s.reserved = 0
	}
}

// errNoMemory says that other sessions use the memory for large messages.
var errNoMemory = &fanfare.Error{Code: fanfare.Unavailable, Message: "too many large messages are being transferred", Hint: "try again later"}

// content reads the bytes of a message. The caller releases the memory of a large one.
func (s *session) content(m *mailbox.Message) ([]byte, error) {
	if m.Size > smallMessageBytes {
		if err := s.reserve(m.Size); err != nil {
			return nil, err
		}
	}
	return s.server.o.Store.Content(s.ctx, s.account.ID, m.Email)
}

// refuseLiteral returns the response to a command whose literal is too large, or nil.
func (s *session) refuseLiteral(raw []byte, l syntax.Literal, before int64) *status {
	_, name := syntax.TagOf(raw)
	if name == "APPEND" && s.loggedIn {
		if most := s.server.o.Limits.MaxMessageBytes; l.Size > most || before+l.Size > 2*most {
			refusal := no("TOOBIG", "the message is larger than the limit of %d bytes: send a smaller one", most)
			return &refusal
		}
		return nil
	}
	most := int64(maxLiteralBytesBefore)
	if s.loggedIn {
		most = maxLiteralBytes
	}
	if before+l.Size > most {
		refusal := bad("the literal is larger than the limit of %d bytes", most)
		return &refusal
	}
	return nil
}

// finish answers a command that was not executed.
func (s *session) finish(raw []byte, answer status) {
	tag, name := syntax.TagOf(raw)
	if tag == "" {
		tag = "*"
	}
	s.server.metrics.command(name, answer.kind, 0)
	s.tagged(tag, answer)
}

// execute executes one command and writes its responses.
func (s *session) execute(raw []byte) {
	began := time.Now()
	s.accessSeen = s.server.accessSeen.Load()
	s.takeOutput()
	c, err := syntax.Parse(raw)
	if wrong, isSyntax := errors.AsType[*syntax.Error](err); isSyntax {
		tag := wrong.Tag
		if tag == "" {
			tag = "*"
		}
		s.server.metrics.command(wrong.Name, "BAD", time.Since(began))
		s.syncAfter(mayExpunge(&syntax.Command{Name: wrong.Name}))
		s.tagged(tag, bad("%s", wrong.Text))
		return
	}
	answer := s.dispatch(c)
	if answer.kind == "" {
		return // the command has answered
	}
	if !answer.keep {
		s.syncAfter(mayExpunge(c))
	}
	s.server.metrics.command(c.FullName(), answer.kind, time.Since(began))
	s.tagged(c.Tag, answer)
}

// mayExpunge reports whether EXPUNGE responses may be sent during a command (RFC 9051, section 7.5.1).
func mayExpunge(c *syntax.Command) bool {
	return c.UID || c.Name != "FETCH" && c.Name != "STORE" && c.Name != "SEARCH"
}

// syncAfter reports changes at the end of a command.
func (s *session) syncAfter(expunge bool) {
	if s.selected == nil {
		return
	}
	err := s.sync(expunge)
	if err == nil && s.qresync && len(s.selected.gone) > 0 {
		// The client may have got higher ModSeqs than those of the removals that wait. It must not take one of them as the highest if the
		// connection ends now, or it never learns of the removals (RFC 7162, section 3.2.4).
		s.untagged("OK [HIGHESTMODSEQ %d] all changes up to this one were reported", max(s.selected.unbroken, 1))
	}
	if err != nil {
		s.lostMailbox(err)
	}
}

// tagged writes a tagged response. Responses to failures end the session if there are too many.
func (s *session) tagged(tag string, answer status) {
	s.out = append(s.out, tag...)
	s.out = append(s.out, ' ')
	s.status(answer)
	switch {
	case answer.kind != "BAD":
		if s.loggedIn || answer.kind == "OK" && s.refused == 0 {
			s.failures = 0
		}
		return
	case s.over:
		return
	}
	s.failures++
	if s.failures >= maxConsecutiveFailures || !s.loggedIn && s.failures >= maxFailuresBefore {
		s.over = true
		s.untagged("BYE too many invalid commands")
	}
}

func (s *session) status(answer status) {
	s.out = append(s.out, answer.kind...)
	s.out = append(s.out, ' ')
	if answer.code != "" {
		s.out = append(s.out, '[')
		s.out = append(s.out, answer.code...)
		s.out = append(s.out, "] "...)
	}
	s.out = append(s.out, responseText(answer.text)...)
	s.out = append(s.out, '\r', '\n')
}

// responseText removes what a response text must not contain.
func responseText(text string) string {
	if text == "" {
		return "done"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f:
			return ' '
		case r >= 0x80:
			return '?'
		}
		return r
	}, text)
}

// untagged writes an untagged response of one line.
func (s *session) untagged(format string, args ...any) {
	s.out = append(s.out, "* "...)
	s.out = fmt.Appendf(s.out, format, args...)
	s.out = append(s.out, '\r', '\n')
}

// flushLarge sends responses when there are many.
func (s *session) flushLarge() error {
	if len(s.out) < outputBytes {
		return s.writeErr
	}
	return s.flush()
}

// flush sends the responses. After an error it drops them.
func (s *session) flush() error {
	if s.writeErr == nil && len(s.out) > 0 {
		_, s.writeErr = s.stream.Write(s.out)
	}
	s.out = s.out[:0]
	if s.writeErr != nil {
		s.over = true
	}
	return s.writeErr
}

// takeOutput gets a buffer for responses.
func (s *session) takeOutput() {
	if s.out == nil {
		if b, isBuffer := outputs.Get().(*[]byte); isBuffer {
			s.out = *b
		}
	}
}

// releaseOutput gives back the buffer, so that a waiting connection has none.
func (s *session) releaseOutput() {
	if cap(s.out) > 0 {
		if cap(s.out) <= 4*outputBytes {
			b := s.out[:0]
			outputs.Put(&b)
		}
		s.out = nil
	}
}

var outputs = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// handshake starts TLS.
func (s *session) handshake() bool {
	s.deadlines.Lock()
	s.ends = earlier(s.ends, time.Now().Add(handshakeTimeout))
	s.deadlines.Unlock()
	secured := tls.Server(deadlineConn{s.conn, s}, s.server.o.TLS)
	if err := secured.HandshakeContext(s.ctx); err != nil {
		s.over = true
		return false
	}
	s.deadlines.Lock()
	s.ends = time.Now().Add(s.server.o.Limits.LoginTimeout)
	s.deadlines.Unlock()
	s.secure = true
	s.use(secured)
	return true
}

// pastDeadline ends a read at once.
var pastDeadline = time.Unix(1, 0)

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
