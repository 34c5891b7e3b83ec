package smtp

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// quitTimeout is the timeout of QUIT; nothing depends on its reply.
const quitTimeout = 5 * time.Second

// keepBuffer is the size in bytes of the largest write buffer that a connection keeps
// between messages.
const keepBuffer = 1 << 20

// A conn is one open connection, ready for envelopes.
type conn struct {
	socket       *deadlineConn
	rw           net.Conn // socket, or TLS over it
	in           *bufio.Reader
	out          []byte // about to be written
	text         []byte // of the last reply
	lastText     string // the text returned last, so that equal texts share it
	relay        string // host:port of the peer
	stopWatching func() bool
	stopAborting func() bool // nil: Config.Abort is not set

	banner        string // text of the greeting
	maxRecipients int    // of a transaction, as stated by the peer; 0: unknown

	extensions extensions
	mode       Mode
	sent       int  // bodies that got a reply
	useful     bool // the peer has replied about a message

	needsReset bool // a refusal may have left a transaction open: send RSET first
	resetting  bool // RSET was written and its reply has not been read
	idled      bool // the peer may have closed the connection while there was nothing to send
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

// writeAround writes out with enclosed inserted after its first before bytes, without
// copying it.
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

// setTimeout sets the deadline of the following reads and writes.
func (c *conn) setTimeout(d time.Duration) { c.socket.setDeadline(time.Now().Add(d), false) }

// textOf returns text as a string; equal consecutive texts share one string.
func (c *conn) textOf(text []byte) string {
	if string(text) != c.lastText {
		c.lastText = string(text)
	}
	return c.lastText
}

// appendEnvelope appends the envelope of tx, after a RSET if one is needed.
func (c *conn) appendEnvelope(dst []byte, tx *transaction) []byte {
	if c.needsReset {
		dst = append(dst, cmdReset...)
		c.needsReset, c.resetting = false, true
	}
	dst = c.extensions.appendMail(dst, tx)
	for _, message := range tx.messages {
		dst = appendRcpt(dst, message)
	}
	return append(dst, cmdData...)
}

// quit sends QUIT and closes the connection. The peer is between transactions, or has
// refused a command.
func (c *conn) quit() {
	c.unwatch()
	c.socket.mu.Lock()
	c.socket.interrupted = false // the context may have ended; QUIT has its own timeout
	c.socket.mu.Unlock()
	c.setTimeout(quitTimeout)
	_, _, _ = c.command(cmdQuit)
	c.close()
}

// close closes the connection without QUIT.
func (c *conn) close() {
	c.unwatch()
	// Closing TLS would wait until its closing alert is written.
	_ = c.socket.Close()
}

// A deadlineConn is a socket whose deadlines are cheap to change. Setting the deadline of a
// socket for every message is expensive, so the socket keeps an earlier one. When that
// fires, it is compared with the intended limit and moved. It is below TLS, which does not
// survive a timeout inside a record.
type deadlineConn struct {
	net.Conn

	mu          sync.Mutex
	deadline    time.Time // of the socket
	limit       time.Time // intended
	bodyStarted bool      // a body is being sent: its reply is awaited even if the context ends
	interrupted bool      // the context has ended
}

// setDeadline limits everything until the next call. If begun is true, the end of the
// context does not interrupt it.
func (w *deadlineConn) setDeadline(until time.Time, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodyStarted = begun
	if w.interrupted && !begun {
		until = time.Unix(1, 0)
	}
	w.apply(until)
}

// interrupt ends reads and writes immediately, unless a body was started.
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

// extend reports whether err is a deadline that fired before the intended limit, and moves
// the deadline there.
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

// Read reads available bytes, within the limit.
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

// unwatch stops watching the contexts that end the connection.
func (c *conn) unwatch() {
	c.stopWatching()
	if c.stopAborting != nil {
		c.stopAborting()
	}
}
