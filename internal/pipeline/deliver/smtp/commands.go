package smtp

import (
	"bytes"
	"strconv"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// maxAddress is the longest address that fits a path (RFC 5321, section
// 4.5.3.1.3: 256 octets with its angle brackets).
const maxAddress = 254

// Extensions are what a peer offered in its answer to EHLO.
type extensions struct {
	pipelining bool
	starttls   bool
	eightBit   bool     // RFC 6152
	utf8       bool     // RFC 6531
	size       bool     // RFC 1870
	maxSize    int      // bytes; 0: no limit stated
	auth       []string // mechanisms, upper case
}

// unsendable says why a message cannot go to this peer at all, or "". Such a
// message never touches the wire.
func (e *extensions) unsendable(l *driver.Message) string {
	switch {
	case l.To == "":
		return "the recipient's address is empty"
	case !validAddress(l.To):
		return "the recipient's address has a character that no SMTP command may carry, or is too long"
	case !validAddress(l.From):
		return "the sender's address has a character that no SMTP command may carry, or is too long"
	case e.maxSize > 0 && l.Size() > e.maxSize:
		return "the message has " + strconv.Itoa(l.Size()) + " bytes, over the next hop's limit of " + strconv.Itoa(e.maxSize)
	case l.EightBit && !e.eightBit:
		return "next hop does not offer 8BITMIME"
	case needsUTF8(l) && !e.utf8:
		return "next hop does not offer SMTPUTF8"
	}
	return ""
}

func needsUTF8(l *driver.Message) bool {
	return l.UTF8 || !ascii(l.To) || !ascii(l.From)
}

// validAddress refuses what could end a path or a command: control characters,
// space and angle brackets.
func validAddress(s string) bool {
	if len(s) > maxAddress {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '<' || c == '>' || c == 0x7f {
			return false
		}
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

const (
	cmdReset = "RSET\r\n"
	cmdData  = "DATA\r\n"
	cmdQuit  = "QUIT\r\n"
)

// individualExtra is how much longer a message to several may get where it ends up with one of
// them: by his address and his link.
const individualExtra = 1024

// declaredSize is the size of what is sent, which may still become a message to one.
func (e *extensions) declaredSize(p *transaction) int {
	size := p.message().Size()
	if larger := size + individualExtra; len(p.messages) > 1 && (e.maxSize == 0 || larger <= e.maxSize) {
		return larger
	}
	return size
}

func (e *extensions) appendMail(dst []byte, p *transaction) []byte {
	l := p.message()
	dst = append(dst, "MAIL FROM:<"...)
	dst = append(dst, l.From...)
	dst = append(dst, '>')
	if e.size {
		dst = append(dst, " SIZE="...)
		dst = strconv.AppendInt(dst, int64(e.declaredSize(p)), 10)
	}
	if l.EightBit {
		dst = append(dst, " BODY=8BITMIME"...)
	}
	if needsUTF8(l) {
		dst = append(dst, " SMTPUTF8"...)
	}
	return append(dst, "\r\n"...)
}

func appendRcpt(dst []byte, l *driver.Message) []byte {
	dst = append(dst, "RCPT TO:<"...)
	dst = append(dst, l.To...)
	return append(dst, ">\r\n"...)
}

var lineDot = []byte("\n.")

// finalDot ends a message (RFC 5321, section 4.1.1.4).
const finalDot = ".\r\n"

// appendBody appends the body of l as it goes after 354, up to the final dot: dots at
// the start of a line doubled (RFC 5321, section 4.5.2), and a final line end.
func appendBody(dst []byte, l *driver.Message) []byte {
	body := l.Body
	if l.NoDotStuffing {
		dst = append(dst, body...)
	} else {
		dst = appendStuffed(dst, body)
	}
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\r\n")) {
		dst = append(dst, "\r\n"...)
	}
	return dst
}

func appendStuffed(dst, body []byte) []byte {
	if len(body) > 0 && body[0] == '.' {
		dst = append(dst, '.')
	}
	for {
		i := bytes.Index(body, lineDot)
		if i < 0 {
			return append(dst, body...)
		}
		dst = append(dst, body[:i+2]...)
		dst = append(dst, '.')
		body = body[i+2:]
	}
}
