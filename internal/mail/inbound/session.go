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
	"fanfare.dev/fanfare/internal/mailbox"
)

// A session is one connection.
type session struct {
	server *Server
	conn   net.Conn // below TLS
	stream net.Conn // TLS, or conn
	in     lines
	out    *bufio.Writer
	peer   string // its IP address

	secure   bool   // TLS
	hello    string // "" before it
	extended bool   // EHLO
	over     bool   // ends after the reply
	refused  int    // commands
	messages int

	account *mailbox.Account // after AUTH
	mail    *mail            // nil before MAIL
	chunks  *incoming        // of BDAT; nil before it

	mu      sync.Mutex
	ends    time.Time // deadline of the session
	message time.Time // deadline of the current message; zero without one
}

// mail is a transaction.
type mail struct {
	from string
	own  []string // addresses of the account that submits the message
	utf8 bool
	size int64 // declared by SIZE
	to   []recipient

	// Of DSN (RFC 3461).
	envelopeID string // ENVID, decoded
	headerOnly bool   // RET=HDRS
}

// recipient is an address that was verified.
type recipient struct {
	address  string
	person   bool // postmaster or abuse
	kind     bounce.Kind
	delivery fanfare.DeliveryRef
	shared   bool

	accounts []mailbox.Account // of a server for mailboxes
	outside  bool              // another server has the mailbox
	notify   notify
	original string // ORCPT, as it was sent
}

// endMail ends the transaction.
func (s *session) endMail() {
	if s.chunks != nil {
		s.chunks.done()
	}
	s.mail, s.chunks = nil, nil
}

func newSession(s *Server, conn net.Conn) *session {
	one := &session{server: s, conn: conn, ends: time.Now().Add(sessionTimeout)}
	one.peer, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
	one.use(conn)
	return one
}

// use makes conn the connection of the session, and drops input that was read ahead.
func (s *session) use(conn net.Conn) {
	s.stream = conn
	if !s.secure {
		conn = deadlineConn{conn, s}
	}
	s.in, s.out = newLines(conn), bufio.NewWriter(conn)
}

// deadlineConn is a connection whose reads and writes have deadlines.
type deadlineConn struct {
	net.Conn
	session *session
}

// Read reads until the current deadline of the session.
func (a deadlineConn) Read(p []byte) (int, error) {
	if err := a.session.setReadDeadline(); err != nil {
		return 0, err
	}
	return a.Conn.Read(p)
}

// Write writes until the deadline of a reply.
func (a deadlineConn) Write(p []byte) (int, error) {
	if err := a.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return a.Conn.Write(p)
}

// setReadDeadline sets the deadline of the next bytes. While the server stops, it is in the past
// unless a message is being received.
func (s *session) setReadDeadline() error {
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
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // an error means that the connection is closed
	}
}

func (s *session) cutOff() { _ = s.conn.Close() }

// receiving begins or ends the receipt of a message.
func (s *session) receiving(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.message = time.Time{}
	if is {
		s.message = time.Now().Add(messageTimeout)
	}
}

// run executes commands until one side ends the session.
func (s *session) run() {
	defer func() { _ = s.stream.Close() }()
	defer s.endMail()
	defer func() {
		if p := recover(); p != nil {
			s.server.counters.panics.Add(1)
			s.server.options.Logger.Error("a session of the inbound server panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if s.server.options.ImplicitTLS && !s.handshake() {
		return
	}
	protocol := "ESMTP"
	if s.server.options.Kind == LMTP {
		protocol = "LMTP"
	}
	s.reply(220, "", "%s %s", s.server.options.Name, protocol)
	for !s.over {
		if !s.in.waiting() && s.out.Flush() != nil {
			return
		}
		line, whole, err := s.in.next(maxCommandBytes)
		switch {
		case err == nil:
			s.command(string(line))
		case errors.Is(err, errLong) && whole:
			s.refuse(500, "5.5.2", "a command can have at most %d bytes", maxCommandBytes)
		default:
			s.end(err)
		}
	}
	s.closeGracefully()
}

// closeGracefully closes the connection so that the last reply arrives: closing it while input is
// unread would discard the reply.
func (s *session) closeGracefully() {
	if s.out.Flush() != nil {
		return
	}
	if tcp, ok := s.conn.(*net.TCPConn); ok && !s.secure && tcp.CloseWrite() == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(closeTimeout))
		_, _ = io.CopyN(io.Discard, s.conn, maxExcessBytes)
	}
}

// end ends the session after an error of its input.
func (s *session) end(err error) {
	s.over = true
	timeout, is := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errBare):
		s.server.counters.broken.Add(1)
		s.reply(521, "5.5.2", "lines must end in CR LF and must not contain a bare CR or LF")
	case errors.Is(err, errLong):
		s.server.counters.broken.Add(1)
		s.reply(500, "5.5.2", "a line is too long")
	case is && timeout.Timeout() && s.server.draining.Load():
		s.reply(421, "4.3.2", "%s is shutting down; try again later", s.server.options.Name)
	case is && timeout.Timeout():
		s.reply(421, "4.4.2", "%s timed out waiting for input", s.server.options.Name)
	}
}

// unsynchronised reports whether the peer sent more input before a reply that it must wait for
// (RFC 2920, section 3.1). It ends the session then, because the input may belong to another
// session.
func (s *session) unsynchronised(command string) bool {
	if !s.in.waiting() {
		return false
	}
	s.over = true
	s.server.counters.broken.Add(1)
	s.reply(554, "5.5.0", "wait for the reply to %s", command)
	return true
}

// reply writes a reply of one line; enhanced is "" without an enhanced status code.
func (s *session) reply(code int, enhanced, text string, args ...any) {
	if enhanced != "" {
		enhanced += " "
	}
	fmt.Fprintf(s.out, "%d %s%s\r\n", code, enhanced, fmt.Sprintf(text, args...))
}

// refuse writes an error reply. It ends the session after maxRefused of them without an accepted message.
func (s *session) refuse(code int, enhanced, text string, args ...any) {
	if s.refused++; s.refused > maxRefused {
		s.over = true
		s.reply(421, "4.7.0", "%s closes the connection after too many rejected commands", s.server.options.Name)
		return
	}
	s.reply(code, enhanced, text, args...)
}

// startTLS starts TLS and resets the session (RFC 3207, section 4.2).
func (s *session) startTLS() {
	switch {
	case s.server.options.TLS == nil || s.secure:
		s.refuse(503, "5.5.1", "STARTTLS is not available")
		return
	case s.unsynchronised("STARTTLS"):
		return
	}
	s.reply(220, "2.0.0", "ready to start TLS")
	if s.out.Flush() != nil {
		s.over = true
		return
	}
	if !s.handshake() {
		s.over = true
		return
	}
	s.endMail()
	s.hello, s.extended = "", false
}

// handshake begins TLS.
func (s *session) handshake() bool {
	s.mu.Lock()
	s.ends = earlier(s.ends, time.Now().Add(handshakeExpiry))
	s.mu.Unlock()
	secured := tls.Server(deadlineConn{s.conn, s}, s.server.options.TLS)
	if err := secured.HandshakeContext(s.server.ctx); err != nil {
		return false
	}
	s.mu.Lock()
	s.ends = time.Now().Add(sessionTimeout)
	s.mu.Unlock()
	s.secure = true
	s.use(secured)
	return true
}
