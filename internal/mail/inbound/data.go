package inbound

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

var tooLarge = "a message has at most " + strconv.Itoa(MaxMessageBytes) + " bytes"

var (
	errTooLarge = errors.New("the message is too large")
	errCrowded  = errors.New("too many large messages come in at once")
)

// data takes a message, and says 250 once all that follows from it is kept.
func (s *session) data() {
	switch {
	case s.mail == nil || len(s.mail.to) == 0:
		s.refuse(503, "5.5.1", "there is no recipient")
		return
	case s.unsynchronised("DATA"):
		return
	}
	m := s.mail
	s.reply(354, "", "end with a line that has a dot alone")
	if s.out.Flush() != nil {
		s.over = true
		return
	}
	s.receiving(true)
	defer s.receiving(false)
	l := &incoming{server: s.server}
	defer l.done()
	text, err := s.text(l)
	s.mail = nil
	s.messages++
	switch {
	case errors.Is(err, errTooLarge):
		s.server.counters.tooLarge.Add(1)
		s.refuse(552, "5.3.4", "%s", tooLarge)
		return
	case errors.Is(err, errCrowded):
		s.server.counters.notNow.Add(1)
		s.reply(452, "4.3.1", "%v, come again later", err)
		return
	case err != nil:
		s.lost(err)
		return
	}
	// Read once, though it may have a hundred recipients.
	reports := sync.OnceValue(func() []bounce.Report { return bounce.Parse(text) })
	for _, to := range m.to {
		if err := s.hand(m, to, text, reports); err != nil {
			s.server.counters.notNow.Add(1)
			s.server.options.Logger.Warn("a message could not be kept, its sender was asked to come again", "kind", to.kind.String(), "peer", s.peer, "error", err)
			s.reply(451, "4.3.0", "this cannot be kept now, come again later")
			return
		}
	}
	failpoint.Hit("before-return-reply")
	s.refused = 0
	s.server.counters.taken.Add(1)
	s.reply(250, "2.6.0", "taken")
}

// text reads a message to the line with a dot alone, and takes the dots out that
// lines begin with (RFC 5321, section 4.5.2).
func (s *session) text(l *incoming) ([]byte, error) {
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
		if l.add(line); l.excess > maxExcessBytes {
			s.over = true // who goes on for so long does not listen
			break
		}
	}
	return l.text, l.refused
}

// A incoming is the text of a message that is being read, and the place that a large
// one takes until it was handed on.
type incoming struct {
	server  *Server
	text    []byte
	large   bool
	refused error // why it is not taken
	excess  int   // bytes of what is not taken
}

func (l *incoming) add(line []byte) {
	size := len(l.text) + len(line) + 2
	switch {
	case l.refused != nil:
	case size > MaxMessageBytes:
		l.refused = errTooLarge
	case size > smallBytes && !l.large && !l.place():
		l.refused = errCrowded
	default:
		l.text = append(append(l.text, line...), "\r\n"...)
		return
	}
	l.text = nil
	l.excess += len(line) + 2
}

// place takes one of those for large messages, if one is free.
func (l *incoming) place() bool {
	select {
	case l.server.large <- struct{}{}:
		l.large = true
	default:
	}
	return l.large
}

// done gives the place back.
func (l *incoming) done() {
	if l.large {
		<-l.server.large
	}
}

// hand gives the message to whoever has to do with it.
func (s *session) hand(m *mail, to recipient, text []byte, reports func() []bounce.Report) error {
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
	if to.kind == bounce.Unsubscribe && !wished(m.from, text) {
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
