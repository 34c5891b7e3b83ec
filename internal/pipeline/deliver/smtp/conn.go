package smtp

import (
	"bufio"
	"net"
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
