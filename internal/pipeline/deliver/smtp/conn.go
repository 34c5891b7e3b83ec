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
	wire  *wire
	rw    net.Conn // wire, or TLS over it
	in    *bufio.Reader
	out   []byte // what is about to be written
	text  []byte // the last reply's text
	same  string // the text last given out, so that equal ones share it
	relay string // who answers
	stop  func() bool

	banner string // how it greeted
	most   int    // recipients that the peer takes in a transaction, as far as it has said; 0: it has not

	can    extensions
	mode   Mode
	sent   int  // bodies that were answered
	served bool // something was said about a message: the connection has been of use

	dirty     bool // a refusal may have left a transaction open: RSET comes first
	resetting bool // RSET was written and its reply is to come
	rested    bool // the peer may have closed it while there was nothing to send
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

// within sets the limit for what follows, counted from now.
func (c *conn) within(d time.Duration) { c.wire.allow(time.Now().Add(d), false) }

// textOf returns text as a string, the one given out last where it is equal.
func (c *conn) textOf(text []byte) string {
	if string(text) != c.same {
		c.same = string(text)
	}
	return c.same
}

// appendEnvelope appends the whole envelope of p, behind a RSET where one is due.
func (c *conn) appendEnvelope(dst []byte, p *parcel) []byte {
	if c.dirty {
		dst = append(dst, cmdReset...)
		c.dirty, c.resetting = false, true
	}
	dst = c.can.appendMail(dst, p)
	for _, l := range p.messages {
		dst = appendRcpt(dst, l)
	}
	return append(dst, cmdData...)
}

// quit says goodbye and closes. The peer is at the start of a transaction, or
// after a refusal.
func (c *conn) quit() {
	c.stop()
	c.wire.mu.Lock()
	c.wire.cut = false // the context may have ended; the farewell has its own limit
	c.wire.mu.Unlock()
	c.within(quitTimeout)
	_, _, _ = c.command(cmdQuit)
	c.close()
}

// close ends the connection as it stands.
func (c *conn) close() {
	c.stop()
	// TLS would wait for its closing alert to be written.
	_ = c.wire.Close()
}

// A wire is a socket with time limits that cost nothing while all goes well.
// Setting a socket's deadline for every message is dear, so the socket keeps an
// old, earlier one; only when that fires is it compared with the limit that is
// meant, and moved. It lies below TLS, which would not survive a time-out
// inside a record.
type wire struct {
	net.Conn

	mu       sync.Mutex
	deadline time.Time // what the socket has
	until    time.Time // what is meant
	begun    bool      // a body is on its way: it is awaited whatever happens
	cut      bool      // the context has ended
}

// allow gives everything up to the next call until that time. With begun, the
// end of the context does not cut it short.
func (w *wire) allow(until time.Time, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = begun
	if w.cut && !begun {
		until = time.Unix(1, 0)
	}
	w.set(until)
}

// hasten ends what is under way at once, unless a body was begun.
func (w *wire) hasten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	if !w.begun {
		w.set(time.Unix(1, 0))
	}
}

func (w *wire) set(until time.Time) {
	w.until = until
	if w.deadline.IsZero() || until.Before(w.deadline) {
		w.deadline = until
		_ = w.SetDeadline(until)
	}
}

// early reports whether err is a deadline that fired before the limit that is
// meant, and moves the deadline there.
func (w *wire) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !time.Now().Before(w.until) {
		return false
	}
	w.deadline = w.until
	_ = w.SetDeadline(w.until)
	return true
}

// Read reads what there is, within the limit.
func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err == nil || n > 0 || !w.early(err) {
			return n, err
		}
	}
}

// Write writes all of p, within the limit.
func (w *wire) Write(p []byte) (int, error) {
	total := 0
	for {
		n, err := w.Conn.Write(p[total:])
		total += n
		if err == nil || !w.early(err) {
			return total, err
		}
	}
}
