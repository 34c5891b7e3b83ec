package inbound

import (
	"fmt"
	"time"
)

// traced is the message with what a last server puts before it (RFC 5321, section
// 4.4). All of it was heard in one line each, so that none has a line end.
func (s *session) traced(m *mail, to recipient, text []byte) []byte {
	protocol := "SMTP"
	if s.extended {
		protocol = "ESMTP"
	}
	if s.secure {
		protocol += "S"
	}
	head := fmt.Sprintf("Return-Path: <%s>\r\nReceived: from %s ([%s])\r\n by %s with %s\r\n for <%s>; %s\r\n",
		m.from, s.hello, s.peer, s.server.options.Name, protocol, to.address, s.server.options.Clock.Now().Format(time.RFC1123Z))
	return append([]byte(head), text...)
}
