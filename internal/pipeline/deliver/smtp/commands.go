package smtp

import (
	"bytes"
	"strconv"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// maxAddress is the length of the longest address that fits into a path (RFC 5321, section
// 4.5.3.1.3: 256 octets with its angle brackets).
const maxAddress = 254

// extensions are the SMTP extensions that a peer offered in its reply to EHLO.
type extensions struct {
	pipelining bool
	starttls   bool
	eightBit   bool     // RFC 6152
	utf8       bool     // RFC 6531
	size       bool     // RFC 1870
	maxSize    int      // bytes; 0: no limit stated
	auth       []string // mechanisms, in upper case
}

// unsendable returns why a message cannot be sent to this peer at all, or "". No part of such a
// message is sent.
func (e *extensions) unsendable(message *driver.Message) string {
	switch {
	case message.To == "":
		return "the recipient address is empty"
	case !validAddress(message.To):
		return "the recipient address is too long or contains a character that SMTP does not allow"
	case !validAddress(message.From):
		return "the sender address is too long or contains a character that SMTP does not allow"
	case e.maxSize > 0 && message.Size() > e.maxSize:
		return "the message has " + strconv.Itoa(message.Size()) + " bytes, more than the next hop's limit of " + strconv.Itoa(e.maxSize)
	case message.EightBit && !e.eightBit:
		return "the next hop does not offer 8BITMIME"
	case needsUTF8(message) && !e.utf8:
		return "the next hop does not offer SMTPUTF8"
	}
	return ""
}

func needsUTF8(message *driver.Message) bool {
	return message.UTF8 || !ascii(message.To) || !ascii(message.From)
}

// validAddress rejects characters that could end a path or a command: control characters,
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

// individualExtra is how much longer a shared message may become if only one recipient is
// left: by that recipient's address and link.
const individualExtra = 1024

// declaredSize returns the SIZE to declare, with space for the individual message.
func (e *extensions) declaredSize(tx *transaction) int {
	size := tx.message().Size()
	if larger := size + individualExtra; len(tx.messages) > 1 && (e.maxSize == 0 || larger <= e.maxSize) {
		return larger
	}
	return size
}

func (e *extensions) appendMail(dst []byte, tx *transaction) []byte {
	message := tx.message()
	dst = append(dst, "MAIL FROM:<"...)
	dst = append(dst, message.From...)
	dst = append(dst, '>')
	if e.size {
		dst = append(dst, " SIZE="...)
		dst = strconv.AppendInt(dst, int64(e.declaredSize(tx)), 10)
	}
	if message.EightBit {
		dst = append(dst, " BODY=8BITMIME"...)
	}
	if needsUTF8(message) {
		dst = append(dst, " SMTPUTF8"...)
	}
	return append(dst, "\r\n"...)
}

func appendRcpt(dst []byte, message *driver.Message) []byte {
	dst = append(dst, "RCPT TO:<"...)
	dst = append(dst, message.To...)
	return append(dst, ">\r\n"...)
}

var lineDot = []byte("\n.")

// finalDot ends a message (RFC 5321, section 4.1.1.4).
const finalDot = ".\r\n"

// appendBody appends the body of a message up to the final dot: it doubles dots at the
// start of a line (RFC 5321, section 4.5.2), and adds a final line end.
func appendBody(dst []byte, message *driver.Message) []byte {
	body := message.Body
	if message.NoDotStuffing {
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
