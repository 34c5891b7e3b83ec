package inbound

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

var tooLarge = "a message can have at most " + strconv.Itoa(MaxMessageBytes) + " bytes"

var (
	errTooLarge = errors.New("the message is too large")
	errCrowded  = errors.New("the server is already receiving too many large messages")
)

// data reads a message, and answers 250 when its consequences are durable.
func (s *session) data() {
	switch {
	case s.mail == nil || len(s.mail.to) == 0:
		s.refuse(503, "5.5.1", "send RCPT first")
		return
	case s.unsynchronised("DATA"):
		return
	}
	m := s.mail
	s.reply(354, "", "end the message with a line that contains only a dot")
	if s.out.Flush() != nil {
		s.over = true
		return
	}
	s.receiving(true)
	defer s.receiving(false)
	in := &incoming{server: s.server}
	defer in.done()
	text, err := s.text(in)
	s.mail = nil
	s.messages++
	switch {
	case errors.Is(err, errTooLarge):
		s.server.counters.tooLarge.Add(1)
		s.refuse(552, "5.3.4", "%s", tooLarge)
		return
	case errors.Is(err, errCrowded):
		s.server.counters.notNow.Add(1)
		s.reply(452, "4.3.1", "%v; try again later", err)
		return
	case err != nil:
		s.end(err)
		return
	}
	// Parse the message once for all its recipients.
	reports := sync.OnceValue(func() []bounce.Report { return bounce.Parse(text) })
	for _, to := range m.to {
		if err := s.deliver(m, to, text, reports); err != nil {
			s.server.counters.notNow.Add(1)
			s.server.options.Logger.Warn("cannot process an inbound message; the sending server was asked to retry", "kind", to.kind.String(), "peer", s.peer, "error", err)
			s.reply(451, "4.3.0", "the message cannot be stored now; try again later")
			return
		}
	}
	failpoint.Hit("before-return-reply")
	s.refused = 0
	s.server.counters.taken.Add(1)
	s.reply(250, "2.6.0", "accepted")
}

// text reads a message up to the line that is a single dot, and removes the leading dots of
// lines (RFC 5321, section 4.5.2).
func (s *session) text(in *incoming) ([]byte, error) {
	for {
		line, _, err := s.in.next(maxTextBytes)
		if err != nil {
			return nil, err
		}
		if len(line) > 0 && line[0] == '.' {
			if line = line[1:]; len(line) == 0 {
				break
			}
		}
		if in.add(line); in.excess > maxExcessBytes {
			s.over = true // the peer ignores the limit
			break
		}
	}
	return in.text, in.refused
}

// incoming is the text of a message that is being read. A large message occupies one of the
// slots for large messages until it is processed.
type incoming struct {
	server  *Server
	text    []byte
	large   bool
	refused error // why it is refused
	excess  int   // bytes after the refusal
}

func (in *incoming) add(line []byte) {
	size := len(in.text) + len(line) + 2
	switch {
	case in.refused != nil:
	case size > MaxMessageBytes:
		in.refused = errTooLarge
	case size > smallBytes && !in.large && !in.place():
		in.refused = errCrowded
	default:
		in.text = append(append(in.text, line...), "\r\n"...)
		return
	}
	in.text = nil
	in.excess += len(line) + 2
}

// place takes a slot for large messages if one is free.
func (in *incoming) place() bool {
	select {
	case in.server.large <- struct{}{}:
		in.large = true
	default:
	}
	return in.large
}

// done releases the slot.
func (in *incoming) done() {
	if in.large {
		<-in.server.large
	}
}

// deliver passes a message for one recipient to Options.Keep or Options.Take.
func (s *session) deliver(m *mail, to recipient, text []byte, reports func() []bounce.Report) error {
	o := &s.server.options
	if to.person {
		s.server.counters.kept.Add(1)
		if err := o.Keep(s.traced(m, to, text)); err != nil {
			return err
		}
		if to.kind != bounce.Complaint {
			return nil
		}
	}
	if to.kind == bounce.Unsubscribe && !isUnsubscribe(m.from, text) {
		s.server.counters.ignored.Add(1)
		return nil
	}
	ctx, cancel := context.WithTimeout(s.server.ctx, takeTimeout)
	defer cancel()
	a := bounce.Arrival{Kind: to.kind, Delivery: to.delivery, Shared: to.shared, From: m.from, To: to.address, Raw: text, Source: "smtp " + s.peer, At: o.Clock.Now()}
	if to.kind != bounce.Unsubscribe {
		a.Reports = reports()
	}
	if err := o.Take(ctx, a); err != nil {
		return err
	}
	switch to.kind {
	case bounce.Bounce:
		s.server.counters.bounces.Add(1)
	case bounce.Unsubscribe:
		s.server.counters.unsubscribes.Add(1)
	}
	return nil
}

// traced returns the message with the trace header of the final server (RFC 5321, section 4.4).
// Each value was received on one line, so none contains a line end.
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

// maxHeaderBytes is how much of a message is read for its header.
const maxHeaderBytes = 64 << 10

// isUnsubscribe reports whether a mail to the address of List-Unsubscribe asks to unsubscribe: it
// has a sender and is not an automatic reply (RFC 3834). Mail programs send such messages
// automatically and may mark them as auto-generated, which is not a reply.
func isUnsubscribe(from string, text []byte) bool {
	if from == "" {
		return false
	}
	text = text[:min(len(text), maxHeaderBytes)]
	if end := bytes.Index(text, []byte("\r\n\r\n")); end >= 0 {
		text = text[:end+4]
	} else {
		text = append(text[:len(text):len(text)], "\r\n\r\n"...)
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil && len(header) == 0 {
		return true // it is not marked as a reply
	}
	local, _, _ := strings.Cut(strings.ToLower(from), "@")
	kind, _, _ := strings.Cut(strings.ToLower(header.Get("Content-Type")), ";")
	submitted, _, _ := strings.Cut(strings.ToLower(header.Get("Auto-Submitted")), ";")
	submitted = strings.TrimSpace(submitted)
	switch {
	case submitted != "" && submitted != "no" && submitted != "auto-generated",
		strings.TrimSpace(kind) == "multipart/report",
		local == "mailer-daemon" || local == "postmaster",
		header.Get("X-Autoreply") != "", header.Get("X-Autorespond") != "", header.Get("X-Auto-Reply-From") != "",
		strings.EqualFold(strings.TrimSpace(header.Get("Precedence")), "auto_reply"):
		return false
	}
	return true
}
