package sink

import (
	"bytes"
	"strconv"
)

// command replies to one command line. It returns false to close the connection after the
// reply.
func (c *session) command(line []byte) bool {
	if c.phase == skipLine {
		return true
	}
	if len(line) < 4 {
		c.reply("500 5.5.2 what?\r\n")
		return true
	}
	switch verb(line) {
	case "MAIL":
		c.mailFrom(line)
	case "RCPT":
		c.rcptTo(line)
	case "DATA":
		return c.data()
	case "EHLO":
		c.reset()
		c.ehlo()
	case "HELO":
		c.reset()
		c.reply("250 " + c.server.cfg.Hostname + "\r\n")
	case "RSET":
		c.reset()
		c.reply("250 2.0.0 Ok\r\n")
	case "NOOP":
		c.reply("250 2.0.0 Ok\r\n")
	case "VRFY":
		c.reply("252 2.1.5 send and see\r\n")
	case "QUIT":
		c.reply("221 2.0.0 bye\r\n")
		return false
	case "STAR":
		if c.server.cfg.TLS == nil || c.tls {
			c.reply("502 5.5.1 no TLS here\r\n")
			return true
		}
		return c.startTLS()
	default:
		c.reply("500 5.5.2 unknown command\r\n")
	}
	return true
}

// verb returns the first four characters of a command in upper case, without an allocation.
func verb(line []byte) string {
	var v [4]byte
	for i := range v {
		v[i] = line[i]
		if 'a' <= v[i] && v[i] <= 'z' {
			v[i] -= 'a' - 'A'
		}
	}
	for _, known := range [...]string{"MAIL", "RCPT", "DATA", "RSET", "EHLO", "HELO", "NOOP", "VRFY", "QUIT", "STAR"} {
		if string(v[:]) == known && (len(line) == 4 || line[4] == ' ' || known == "STAR") {
			return known
		}
	}
	return ""
}

func (c *session) ehlo() {
	c.reply("250-" + c.server.cfg.Hostname + "\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n")
	if c.server.cfg.TLS != nil && !c.tls {
		c.reply("250-STARTTLS\r\n")
	}
	c.reply("250 SIZE " + strconv.Itoa(c.server.cfg.MaxMessage) + "\r\n")
}

func (c *session) mailFrom(line []byte) {
	address, params, ok := mailPath(line, "FROM:")
	switch {
	case !ok:
		c.reply("501 5.5.4 MAIL FROM:<address>\r\n")
	case c.mail:
		c.reply("503 5.5.1 nested MAIL\r\n")
	case declaredSize(params) > c.server.cfg.MaxMessage:
		c.server.counters.rejected5xx.Add(1)
		c.reply("552 5.3.4 message too large\r\n")
	default:
		c.mail = true
		c.from = append(c.from[:0], address...)
		c.reply("250 2.1.0 Ok\r\n")
	}
}

func (c *session) rcptTo(line []byte) {
	address, _, ok := mailPath(line, "TO:")
	switch {
	case !c.mail:
		c.reply("503 5.5.1 MAIL first\r\n")
		return
	case !ok || len(address) == 0:
		c.reply("501 5.5.4 RCPT TO:<address>\r\n")
		return
	case len(c.rcpts) >= maxRecipients:
		c.reply("452 4.5.3 too many recipients\r\n")
		return
	}
	if len(c.server.hosts.rules) > 0 {
		verdict, wait := c.server.hostVerdict(hostOf(address))
		switch verdict {
		case hostRefuses:
			c.reply("451 4.4.1 no answer from that host (injected)\r\n")
			return
		case hostOverRate:
			c.reply("452 4.7.1 too many messages for that host (injected)\r\n")
			return
		}
		c.delay = max(c.delay, wait)
	}
	verdict := c.server.faults.verdict(address)
	if verdict != pass && c.server.faults.At == AtRcpt {
		if verdict == tempFail {
			c.server.counters.rejected4xx.Add(1)
			c.reply("450 4.2.0 try again later (injected)\r\n")
		} else {
			c.server.counters.rejected5xx.Add(1)
			c.reply("550 5.1.1 no such person (injected)\r\n")
		}
		return
	}
	c.refusal = max(c.refusal, verdict)
	// The next message reuses the memory of an address.
	n := len(c.rcpts)
	if n < cap(c.rcpts) {
		c.rcpts = c.rcpts[:n+1]
	} else {
		c.rcpts = append(c.rcpts, nil)
	}
	c.rcpts[n] = append(c.rcpts[n][:0], address...)
	c.reply("250 2.1.5 Ok\r\n")
}

func (c *session) data() bool {
	s := c.server
	switch {
	case !c.mail:
		c.reply("503 5.5.1 MAIL first\r\n")
		return true
	case len(c.rcpts) == 0:
		c.reply("554 5.5.1 no valid recipients\r\n")
		return true
	case s.faults.hit(s.faults.beforeData):
		s.counters.beforeData.Add(1)
		return false
	case c.refusal != pass && s.faults.At == AtData:
		if c.refusal == tempFail {
			s.counters.rejected4xx.Add(1)
			c.reply("451 4.3.0 try again later (injected)\r\n")
		} else {
			s.counters.rejected5xx.Add(1)
			c.reply("554 5.7.1 not wanted (injected)\r\n")
		}
		c.reset()
		return true
	}
	c.dropInBody = s.faults.hit(s.faults.inData)
	c.phase, c.scanned = body, 0
	c.reply("354 go ahead\r\n")
	return true
}

// mailPath parses the address of "MAIL FROM:<address> params". It tolerates spaces and
// missing angle brackets.
func mailPath(line []byte, keyword string) (address, params []byte, ok bool) {
	rest := bytes.TrimLeft(line[4:], " ")
	if len(rest) < len(keyword) || !bytes.EqualFold(rest[:len(keyword)], []byte(keyword)) {
		return nil, nil, false
	}
	rest = bytes.TrimLeft(rest[len(keyword):], " ")
	if len(rest) > 0 && rest[0] == '<' {
		end := bytes.IndexByte(rest, '>')
		if end < 0 {
			return nil, nil, false
		}
		return rest[1:end], rest[end+1:], true
	}
	address, params, _ = bytes.Cut(rest, []byte{' '})
	return address, params, len(address) > 0
}

// declaredSize returns SIZE= (RFC 1870) from the parameters of MAIL, or 0.
func declaredSize(params []byte) int {
	for len(params) > 0 {
		var p []byte
		params = bytes.TrimLeft(params, " ")
		p, params, _ = bytes.Cut(params, []byte{' '})
		if len(p) > 5 && bytes.EqualFold(p[:5], []byte("SIZE=")) {
			n, err := strconv.Atoi(string(p[5:]))
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
