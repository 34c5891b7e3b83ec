package smtp

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// quitTimeout bounds the farewell, which nothing depends on.
const quitTimeout = 5 * time.Second

// keepBuffer is the largest write buffer that a connection keeps between
// messages, in bytes.
const keepBuffer = 1 << 20

// A conn is one open connection, ready for envelopes.
type conn struct {
	socket       *deadlineConn
	rw           net.Conn // wire, or TLS over it
	in           *bufio.Reader
	out          []byte // what is about to be written
	text         []byte // the last reply's text
	lastText     string // the text last given out, so that equal ones share it
	relay        string // who answers
	stopWatching func() bool

	banner        string // how it greeted
	maxRecipients int    // recipients that the peer takes in a transaction, as far as it has said; 0: it has not

	extensions extensions
	mode       Mode
	sent       int  // bodies that were answered
	useful     bool // something was said about a message: the connection has been of use

	needsReset bool // a refusal may have left a transaction open: RSET comes first
	resetting  bool // RSET was written and its reply is to come
	idled      bool // the peer may have closed it while there was nothing to send
}

// reply reads one reply. Its text is valid until the next call.
func (c *conn) reply() (int, []byte, error) {
	code, text, err := readReply(c.in, c.text, nil)
	c.text = text
	return code, text, err
}

// command writes one command and reads its reply.
func (c *conn) command(line string) (int, []byte, error) {
	if err := c.write([]byte(line)); err != nil {
		return 0, nil, err
	}
	return c.reply()
}

func (c *conn) write(p []byte) error {
	_, err := c.rw.Write(p)
	return err
}

// writeAround writes out, and behind its first bytes what is enclosed, from where
// it lies.
func (c *conn) writeAround(before int, enclosed []byte) (wrote int, err error) {
	if len(enclosed) == 0 {
		return c.rw.Write(c.out)
	}
	for _, stretch := range [][]byte{c.out[:before], enclosed, c.out[before:]} {
		n, err := c.rw.Write(stretch)
		if wrote += n; err != nil {
			return wrote, err
		}
	}
	return wrote, nil
}

// setTimeout sets the limit for what follows, counted from now.
func (c *conn) setTimeout(d time.Duration) { c.socket.setDeadline(time.Now().Add(d), false) }

// textOf returns text as a string, the one given out last where it is equal.
func (c *conn) textOf(text []byte) string {
	if string(text) != c.lastText {
		c.lastText = string(text)
	}
	return c.lastText
}

// appendEnvelope appends the whole envelope of p, behind a RSET where one is due.
func (c *conn) appendEnvelope(dst []byte, p *transaction) []byte {
	if c.needsReset {
		dst = append(dst, cmdReset...)
		c.needsReset, c.resetting = false, true
	}
	dst = c.extensions.appendMail(dst, p)
	for _, l := range p.messages {
		dst = appendRcpt(dst, l)
	}
	return append(dst, cmdData...)
}

// quit says goodbye and closes. The peer is at the start of a transaction, or
// after a refusal.
func (c *conn) quit() {
	c.stopWatching()
	c.socket.mu.Lock()
	c.socket.interrupted = false // the context may have ended; the farewell has its own limit
	c.socket.mu.Unlock()
	c.setTimeout(quitTimeout)
	_, _, _ = c.command(cmdQuit)
	c.close()
}

// close ends the connection as it stands.
func (c *conn) close() {
	c.stopWatching()
	// TLS would wait for its closing alert to be written.
	_ = c.socket.Close()
}

// A wire is a socket with time limits that cost nothing while all goes well.
// Setting a socket's deadline for every message is dear, so the socket keeps an
// old, earlier one; only when that fires is it compared with the limit that is
// meant, and moved. It lies below TLS, which would not survive a time-out
// inside a record.
type deadlineConn struct {
	net.Conn

	mu          sync.Mutex
	deadline    time.Time // what the socket has
	limit       time.Time // what is meant
	bodyStarted bool      // a body is on its way: it is awaited whatever happens
	interrupted bool      // the context has ended
}

// setDeadline gives everything up to the next call until that time. With begun, the
// end of the context does not cut it short.
func (w *deadlineConn) setDeadline(until time.Time, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodyStarted = begun
	if w.interrupted && !begun {
		until = time.Unix(1, 0)
	}
	w.apply(until)
}

// interrupt ends what is under way at once, unless a body was begun.
func (w *deadlineConn) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupted = true
	if !w.bodyStarted {
		w.apply(time.Unix(1, 0))
	}
}

func (w *deadlineConn) apply(until time.Time) {
	w.limit = until
	if w.deadline.IsZero() || until.Before(w.deadline) {
		w.deadline = until
		_ = w.SetDeadline(until)
	}
}

// extend reports whether err is a deadline that fired before the limit that is
// meant, and moves the deadline there.
func (w *deadlineConn) extend(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !time.Now().Before(w.limit) {
		return false
	}
	w.deadline = w.limit
	_ = w.SetDeadline(w.limit)
	return true
}

// Read reads what there is, within the limit.
func (w *deadlineConn) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err == nil || n > 0 || !w.extend(err) {
			return n, err
		}
	}
}

// Write writes all of p, within the limit.
func (w *deadlineConn) Write(p []byte) (int, error) {
	total := 0
	for {
		n, err := w.Conn.Write(p[total:])
		total += n
		if err == nil || !w.extend(err) {
			return total, err
		}
	}
}
