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

// tooLarge says how large a message can be.
func (s *Server) tooLarge() string {
	return "a message can have at most " + strconv.Itoa(s.maxBytes) + " bytes"
}

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
	case s.chunks != nil:
		s.refuse(503, "5.5.1", "a message is sent either with DATA or with BDAT")
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
	in := &incoming{server: s.server, text: make([]byte, 0, usualBytes)}
	defer in.done()
	text, err := s.text(in)
	s.mail = nil
	s.messages++
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errCrowded):
		s.refuseMessage(m, err)
		return
	case err != nil:
		s.end(err)
		return
	}
	if s.server.options.Kind != Returns {
		s.deliverToMailboxes(m, text)
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

// refuseMessage refuses a message with errTooLarge or errCrowded.
func (s *session) refuseMessage(m *mail, err error) {
	if errors.Is(err, errTooLarge) {
		s.server.counters.tooLarge.Add(1)
		s.refuseData(m, 552, "5.3.4", s.server.tooLarge())
		return
	}
	s.server.counters.notNow.Add(1)
	s.replyData(m, 452, "4.3.1", err.Error()+"; try again later")
}

// replyData writes the reply to a message: of an LMTP server one for each recipient (RFC 2033, section 4.2).
func (s *session) replyData(m *mail, code int, enhanced, text string) {
	s.reply(code, enhanced, "%s", text)
	if s.server.options.Kind == LMTP {
		for range m.to[1:] {
			s.reply(code, enhanced, "%s", text)
		}
	}
}

// refuseData is replyData for a mistake of the peer.
func (s *session) refuseData(m *mail, code int, enhanced, text string) {
	if s.server.options.Kind == LMTP {
		s.replyData(m, code, enhanced, text)
		return
	}
	s.refuse(code, enhanced, "%s", text)
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

// usualBytes is the length of most messages.
const usualBytes = 8 << 10

// incoming is the text of a message that is being read. A large message has a share of the memory for large messages until it is processed.
type incoming struct {
	server  *Server
	text    []byte
	claimed int64 // bytes of memory for large messages
	refused error // why it is refused
	excess  int   // bytes after the refusal
}

// add adds a line and its end.
func (in *incoming) add(line []byte) {
	if in.admit(len(line) + 2) {
		in.text = append(append(in.text, line...), "\r\n"...)
	}
}

// addRaw adds bytes.
func (in *incoming) addRaw(text []byte) {
	if in.admit(len(text)) {
		in.text = append(in.text, text...)
	}
}

// admit reports whether there may be more bytes. If not, the message is refused.
func (in *incoming) admit(more int) bool {
	size := len(in.text) + more
	switch {
	case in.refused != nil:
	case size > in.server.maxBytes:
		in.refused = errTooLarge
	case size > smallBytes && int64(size) > in.claimed && !in.claim():
		in.refused = errCrowded
	default:
		return true
	}
	in.text = nil
	in.excess += more
	return false
}

// claim takes more memory for large messages if there is some. A message may always have all of it.
func (in *incoming) claim() bool {
	if total := in.server.large.Add(largeStep); total > maxLargeBytes && total > in.claimed+largeStep {
		in.server.large.Add(-largeStep)
		return false
	}
	in.claimed += largeStep
	return true
}

// done releases the memory.
func (in *incoming) done() {
	in.server.large.Add(-in.claimed)
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
