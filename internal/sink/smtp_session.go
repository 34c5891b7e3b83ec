package sink

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"time"
)

const (
	readBuffer = 32 << 10 // bytes at the start; grows for a large message and shrinks after it
	keepBuffer = 1 << 20
	readSpace  = 4 << 10 // minimum space for a read
)

// A phase is what a session waits for.
type phase uint8

const (
	commands phase = iota
	body           // the final dot
	skipBody       // the final dot of a message that is too large
	skipLine       // the end of a line that is too long
)

// A session is one connection. All input of one read is processed and answered with one
// write.
type session struct {
	server *Server
	socket net.Conn // without TLS
	rw     net.Conn // the socket, or TLS over it

	buf     []byte // buf[r:w] was read and not processed
	r, w    int
	scanned int // bytes of buf[r:w] that have no final dot
	out     []byte
	lines   []byte // for the record

	phase      phase
	from       []byte
	mail       bool // MAIL was accepted
	rcpts      [][]byte
	refusal    int           // injected reply for this message: pass, tempFail or permFail
	dropInBody bool          // close the connection when the body begins
	delay      time.Duration // before the reply to the final dot

	deadline time.Time
	tls      bool
}

func newSession(s *Server, nc net.Conn) *session {
	return &session{server: s, socket: nc, rw: nc, buf: make([]byte, readBuffer)}
}

func (c *session) run() {
	c.reply("220 " + c.server.cfg.Hostname + " ESMTP Fanfare sink\r\n")
	for {
		more := c.processInput()
		if !c.flush() || !more {
			return
		}
		if !c.read() {
			return
		}
	}
}

func (c *session) reply(line string) { c.out = append(c.out, line...) }

// flush writes the record and then sends the replies.
func (c *session) flush() bool {
	if len(c.lines) > 0 {
		err := c.server.recorder.write(c.lines, c.server.recorder.sync)
		c.lines = c.lines[:0]
		if err != nil {
			return false // an unrecorded message gets no reply
		}
	}
	if len(c.out) == 0 {
		return true
	}
	_, err := c.rw.Write(c.out)
	c.out = c.out[:0]
	return err == nil
}

func (c *session) read() bool {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > keepBuffer {
			c.buf = make([]byte, readBuffer)
		}
	}
	if len(c.buf)-c.w < readSpace {
		if c.r > 0 {
			c.w = copy(c.buf, c.buf[c.r:c.w])
			c.r = 0
		}
		if len(c.buf)-c.w < readSpace {
			grown := make([]byte, 2*len(c.buf))
			copy(grown, c.buf[:c.w])
			c.buf = grown
		}
	}
	if now := time.Now(); c.deadline.Sub(now) < idleTimeout/2 {
		c.deadline = now.Add(idleTimeout)
		_ = c.socket.SetDeadline(c.deadline)
	}
	n, err := c.rw.Read(c.buf[c.w:])
	c.w += n
	return n > 0 || err == nil
}

// processInput processes all complete input. It returns false to close the connection.
func (c *session) processInput() bool {
	for c.r < c.w {
		switch c.phase {
		case commands:
			line, ok := c.line()
			if !ok {
				return true
			}
			if !c.command(line) {
				return false
			}
		case skipLine:
			i := bytes.IndexByte(c.buf[c.r:c.w], '\n')
			if i < 0 {
				c.r = c.w
				return true
			}
			c.r += i + 1
			c.phase = commands
			c.reply("500 5.5.6 line too long\r\n")
		default:
			if c.dropInBody {
				c.server.counters.inData.Add(1)
				return false
			}
			message, ok := c.message()
			if !ok {
				return true
			}
			if !c.accept(message) {
				return false
			}
		}
	}
	return true
}

// line takes one command line from the buffer.
func (c *session) line() ([]byte, bool) {
	p := c.buf[c.r:c.w]
	i := bytes.IndexByte(p[:min(len(p), maxLine)], '\n')
	if i < 0 {
		if len(p) >= maxLine {
			c.phase = skipLine
			return nil, true
		}
		return nil, false
	}
	c.r += i + 1
	if i > 0 && p[i-1] == '\r' {
		i--
	}
	return p[:i:i], true
}

var finalDot = []byte("\r\n.\r\n")

// message takes one message from the buffer, including the line end before its final dot;
// nil and true for a message that was too large.
func (c *session) message() ([]byte, bool) {
	p := c.buf[c.r:c.w]
	if c.scanned == 0 && c.phase == body && bytes.HasPrefix(p, finalDot[2:]) {
		c.r += 3
		c.phase = commands
		return p[:0], true
	}
	i := bytes.Index(p[c.scanned:], finalDot)
	if i >= 0 {
		i += c.scanned
		c.r += i + len(finalDot)
		tooLarge := c.phase == skipBody || i+2 > c.server.cfg.MaxMessage
		c.phase, c.scanned = commands, 0
		if tooLarge {
			return nil, true
		}
		return p[: i+2 : i+2], true
	}
	c.scanned = max(0, len(p)-len(finalDot)+1)
	if c.phase == body && len(p) > c.server.cfg.MaxMessage+len(finalDot) {
		c.phase = skipBody
	}
	if c.phase == skipBody {
		c.r += c.scanned // the rest is examined again with the next input
		c.scanned = 0
	}
	return nil, false
}

// accept counts a message and replies to its final dot.
func (c *session) accept(message []byte) bool {
	s := c.server
	defer c.reset()
	if message == nil {
		s.counters.rejected5xx.Add(1)
		c.reply("552 5.3.4 message too large\r\n")
		return true
	}
	if s.overRate() {
		c.reply("452 4.7.1 too many messages in a second (injected)\r\n")
		return true
	}
	if s.faults.hit(s.faults.delay) {
		c.delay += s.faults.Delay
	}
	if c.delay > 0 && (!c.flush() || !s.pause(context.Background(), c.delay)) {
		return false
	}
	switch c.refusal {
	case tempFail:
		s.counters.rejected4xx.Add(1)
		c.reply("451 4.3.0 try again later (injected)\r\n")
		return true
	case permFail:
		s.counters.rejected5xx.Add(1)
		c.reply("554 5.6.0 not wanted (injected)\r\n")
		return true
	}
	event, messageID := messageIDs(message)
	var n int64
	n, c.lines = s.accept(accepted{event, messageID, c.rcpts, len(message)}, c.lines)
	s.showMessage(string(c.from), c.rcpts, func() []byte { return unstuff(message) })
	if s.faults.hit(s.faults.beforeReply) {
		s.counters.beforeReply.Add(1)
		return false // earlier replies were flushed, this one is never sent
	}
	c.reply("250 2.0.0 Ok: queued as ")
	c.out = strconv.AppendInt(c.out, n, 10)
	c.reply("\r\n")
	return true
}

// reset clears the transaction.
func (c *session) reset() {
	c.mail, c.refusal, c.dropInBody, c.delay = false, pass, false, 0
	c.rcpts = c.rcpts[:0]
}

// startTLS continues with TLS. It discards plain text after the command (RFC 3207, section
// 5).
func (c *session) startTLS() bool {
	c.reply("220 2.0.0 go ahead\r\n")
	if !c.flush() {
		return false
	}
	t := tls.Server(c.socket, c.server.cfg.TLS)
	if err := t.HandshakeContext(context.Background()); err != nil {
		return false
	}
	c.rw, c.tls = t, true
	c.r, c.w = 0, 0
	c.reset()
	return true
}
