package inbound

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

// A session is one connection.
type session struct {
	server *Server
	conn   net.Conn // below TLS
	above  net.Conn // TLS, or conn
	in     lines
	out    *bufio.Writer
	peer   string // its IP address

	secure   bool   // TLS
	hello    string // "" before it
	extended bool   // EHLO
	over     bool
	refused  int
	messages int

	mail *mail // nil before MAIL

	mu      sync.Mutex
	ends    time.Time // of the session
	message time.Time // when the message under way must have ended; zero: none is
}

// A mail is a transaction.
type mail struct {
	from string
	utf8 bool
	to   []recipient
}

// A recipient is an address that was verified.
type recipient struct {
	address  string
	person   bool // postmaster or abuse
	kind     bounce.Kind
	delivery fanfare.DeliveryRef
	shared   bool
}

func newSession(s *Server, conn net.Conn) *session {
	one := &session{server: s, conn: conn, ends: time.Now().Add(sessionTimeout)}
	one.peer, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
	one.speak(conn)
	return one
}

// speak reads and writes by conn from now on; what was read ahead is forgotten.
func (s *session) speak(conn net.Conn) {
	s.above = conn
	if !s.secure {
		conn = awaited{conn, s}
	}
	s.in, s.out = newLines(conn), bufio.NewWriter(conn)
}

// awaited is a connection on which no wait is without an end.
type awaited struct {
	net.Conn
	session *session
}

// Read waits for as long as the peer may take now.
func (a awaited) Read(p []byte) (int, error) {
	if err := a.session.await(); err != nil {
		return 0, err
	}
	return a.Conn.Read(p)
}

// Write waits for as long as the peer may take to read an answer.
func (a awaited) Write(p []byte) (int, error) {
	if err := a.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return a.Conn.Write(p)
}

// await sets until when the next bytes have to be there. While the server stops that
// is now, unless a message is under way.
func (s *session) await() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now().Add(commandTimeout)
	switch {
	case !s.message.IsZero():
		until = earlier(time.Now().Add(dataTimeout), s.message)
	case s.server.draining.Load():
		until = time.Unix(1, 0)
	}
	return s.conn.SetReadDeadline(earlier(until, s.ends))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// hurry ends the wait for a command.
func (s *session) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.message.IsZero() {
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed needs none
	}
}

func (s *session) cutOff() { _ = s.conn.Close() }

// receiving tells whether a message is under way.
func (s *session) receiving(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.message = time.Time{}
	if is {
		s.message = time.Now().Add(messageTimeout)
	}
}

// run answers until one side ends it.
func (s *session) run() {
	defer func() { _ = s.above.Close() }()
	defer func() {
		if p := recover(); p != nil {
			s.server.counters.panics.Add(1)
			s.server.options.Logger.Error("a session of the inbound server panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	s.reply(220, "", "%s ESMTP", s.server.options.Name)
	for !s.over {
		if !s.in.waiting() && s.out.Flush() != nil {
			return
		}
		line, whole, err := s.in.next(maxCommandBytes)
		switch {
		case err == nil:
			s.command(string(line))
		case errors.Is(err, errLong) && whole:
			s.refuse(500, "5.5.2", "a command has at most %d bytes", maxCommandBytes)
		default:
			s.lost(err)
		}
	}
	s.part()
}

// part ends the connection so that the last answer arrives: where input is left that
// nobody read, closing at once would take it away from the peer.
func (s *session) part() {
	if s.out.Flush() != nil {
		return
	}
	if tcp, ok := s.conn.(*net.TCPConn); ok && !s.secure && tcp.CloseWrite() == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(partingTimeout))
		_, _ = io.CopyN(io.Discard, s.conn, maxExcessBytes)
	}
}

// lost ends the session after input that cannot be gone on with.
func (s *session) lost(err error) {
	s.over = true
	timeout, is := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errBare):
		s.server.counters.broken.Add(1)
		s.reply(521, "5.5.2", "a line has to end in CR LF and may have neither elsewhere")
	case errors.Is(err, errLong):
		s.server.counters.broken.Add(1)
		s.reply(500, "5.5.2", "a line is too long")
	case is && timeout.Timeout() && s.server.draining.Load():
		s.reply(421, "4.3.2", "%s is stopping, come again later", s.server.options.Name)
	case is && timeout.Timeout():
		s.reply(421, "4.4.2", "%s has waited for too long", s.server.options.Name)
	}
}

// unsynchronised reports whether the peer has gone on without the answer that it
// has to wait for (RFC 2920, section 3.1): the session ends then, because what it
// sent may be meant for somebody else.
func (s *session) unsynchronised(command string) bool {
	if !s.in.waiting() {
		return false
	}
	s.over = true
	s.server.counters.broken.Add(1)
	s.reply(554, "5.5.0", "wait for the answer to %s", command)
	return true
}

// reply writes an answer of one line; enhanced is "" where it has no such code.
func (s *session) reply(code int, enhanced, text string, args ...any) {
	if enhanced != "" {
		enhanced += " "
	}
	fmt.Fprintf(s.out, "%d %s%s\r\n", code, enhanced, fmt.Sprintf(text, args...))
}

// refuse replies with an error. A session that gets too many errors in a row ends.
func (s *session) refuse(code int, enhanced, text string, args ...any) {
	if s.refused++; s.refused > maxRefused {
		s.over = true
		s.reply(421, "4.7.0", "%s has heard too many commands that were refused", s.server.options.Name)
		return
	}
	s.reply(code, enhanced, text, args...)
}

// startTLS goes on by TLS, and begins anew there (RFC 3207, section 4.2).
func (s *session) startTLS() {
	switch {
	case s.server.options.TLS == nil || s.secure:
		s.refuse(503, "5.5.1", "STARTTLS is not offered now")
		return
	case s.unsynchronised("STARTTLS"):
		return
	}
	s.reply(220, "2.0.0", "go ahead")
	if s.out.Flush() != nil {
		s.over = true
		return
	}
	s.mu.Lock()
	s.ends = earlier(s.ends, time.Now().Add(handshakeExpiry))
	s.mu.Unlock()
	secured := tls.Server(awaited{s.conn, s}, s.server.options.TLS)
	if err := secured.HandshakeContext(s.server.ctx); err != nil {
		s.over = true
		return
	}
	s.mu.Lock()
	s.ends = time.Now().Add(sessionTimeout)
	s.mu.Unlock()
	s.secure, s.hello, s.extended, s.mail = true, "", false, nil
	s.speak(secured)
}
