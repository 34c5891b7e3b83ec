package inbound

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"fanfare.dev/fanfare/internal/mail/bounce"
)

// command executes one command.
func (s *session) command(line string) {
	verb, arg, _ := strings.Cut(line, " ")
	verb = strings.ToUpper(verb)
	if arg != "" && slices.Contains([]string{"DATA", "RSET", "QUIT", "STARTTLS"}, verb) {
		s.refuse(501, "5.5.4", "%s does not accept an argument", verb)
		return
	}
	switch verb {
	case "EHLO", "HELO", "LHLO":
		s.greet(verb, arg)
	case "MAIL":
		s.from(arg)
	case "RCPT":
		s.rcpt(arg)
	case "DATA":
		s.data()
	case "BDAT":
		s.chunk(arg)
	case "RSET":
		s.endMail()
		s.reply(250, "2.0.0", "ok")
	case "NOOP":
		s.reply(250, "2.0.0", "ok")
	case "VRFY":
		s.refuse(252, "2.5.2", "cannot verify addresses; use RCPT instead")
	case "QUIT":
		s.over = true
		s.reply(221, "2.0.0", "bye")
	case "STARTTLS":
		s.startTLS()
	case "AUTH":
		s.authenticate(arg)
	case "EXPN", "HELP", "TURN", "ETRN", "SEND", "SOML", "SAML":
		s.refuse(502, "5.5.1", "%s is not supported", verb)
	case "GET", "POST", "PUT", "HEAD", "OPTIONS", "CONNECT", "PRI":
		s.over = true // a browser was tricked into sending mail
		s.server.counters.broken.Add(1)
		s.reply(521, "5.5.1", "this is an SMTP server")
	default:
		s.refuse(500, "5.5.2", "unknown command")
	}
}

func (s *session) greet(verb, arg string) {
	if lmtp := s.server.options.Kind == LMTP; lmtp != (verb == "LHLO") { // RFC 2033, section 4.1
		if lmtp {
			s.refuse(500, "5.5.1", "this is an LMTP server; send LHLO")
		} else {
			s.refuse(500, "5.5.2", "unknown command")
		}
		return
	}
	arg = strings.TrimSpace(arg)
	if arg == "" || len(arg) > 255 || strings.ContainsFunc(arg, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		s.refuse(501, "5.5.4", "send a host name, for example: %s mail.example.org", verb)
		return
	}
	if s.unsynchronised(verb) {
		return
	}
	s.endMail()
	s.hello = arg
	if s.extended = verb != "HELO"; !s.extended {
		s.reply(250, "", "%s", s.server.options.Name)
		return
	}
	offered := []string{s.server.options.Name, "PIPELINING", "SIZE " + strconv.Itoa(s.server.maxBytes), "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"}
	if s.server.options.Kind != Returns {
		offered = append(offered, "CHUNKING")
	}
	if s.server.options.Kind == Submission {
		offered = append(offered, "DSN")
		if s.secure && s.account == nil {
			offered = append(offered, "AUTH SCRAM-SHA-256 PLAIN")
		}
	}
	if s.server.options.TLS != nil && !s.secure {
		offered = append(offered, "STARTTLS")
	}
	for i, one := range offered {
		sep := "-"
		if i == len(offered)-1 {
			sep = " "
		}
		_, _ = s.out.WriteString("250" + sep + one + "\r\n") // Flush returns the error
	}
}

func (s *session) from(arg string) {
	switch {
	case s.hello == "":
		s.refuse(503, "5.5.1", "send EHLO first")
		return
	case s.server.options.Kind == Submission && s.account == nil:
		s.refuse(530, "5.7.0", "log in first: use AUTH with the address of the mailbox and an app password, over TLS")
		return
	case s.mail != nil:
		s.refuse(503, "5.5.1", "the sender is already set")
		return
	case s.messages >= maxMessages && s.server.options.Kind != LMTP: // the peer of LMTP is one server, which keeps its connections
		s.over = true
		s.reply(421, "4.7.0", "limit of %d messages per connection reached; open a new connection", maxMessages)
		return
	}
	path, params, ok := cutPath(arg, "FROM:")
	if !ok {
		s.refuse(501, "5.5.4", "syntax: MAIL FROM:<name@example.org>")
		return
	}
	m := &mail{}
	unicodeNeeded := false
	if m.from, unicodeNeeded, ok = senderPath(path); !ok {
		s.refuse(501, "5.1.7", "invalid sender address")
		return
	}
	for _, p := range parameters(params) {
		if code, enhanced, text := s.parameter(m, p); code != 0 {
			s.refuse(code, enhanced, "%s", text)
			return
		}
	}
	if unicodeNeeded && !m.utf8 {
		s.refuse(553, "5.6.7", "this address requires SMTPUTF8")
		return
	}
	if s.account != nil && !s.ownSender(m) {
		return
	}
	s.mail = m
	s.reply(250, "2.1.0", "ok")
}

// parameter applies a parameter of MAIL; code is 0, or that of the error.
func (s *session) parameter(m *mail, p parameter) (code int, enhanced, text string) {
	body := strings.ToUpper(p.value)
	switch {
	case !s.extended:
		return 555, "5.5.4", "parameters require EHLO"
	case p.key == "SIZE":
		size, err := strconv.ParseUint(p.value, 10, 63)
		if err != nil {
			return 501, "5.5.4", "SIZE must be a number"
		}
		if size > uint64(s.server.maxBytes) {
			s.server.counters.tooLarge.Add(1)
			return 552, "5.3.4", s.server.tooLarge()
		}
		m.size = int64(size)
	case p.key == "BODY" && (body == "7BIT" || body == "8BITMIME"):
	case p.key == "SMTPUTF8" && p.value == "":
		m.utf8 = true
	case s.server.options.Kind == Submission && (p.key == "RET" || p.key == "ENVID"):
		return m.dsnParameter(p)
	case s.server.options.Kind == Submission && p.key == "AUTH": // RFC 4954, section 5; the account that logged in counts
	default:
		return 555, "5.5.4", "unknown parameter"
	}
	return 0, "", ""
}

func (s *session) rcpt(arg string) {
	if s.mail == nil {
		s.refuse(503, "5.5.1", "send MAIL first")
		return
	}
	path, params, ok := cutPath(arg, "TO:")
	switch {
	case !ok:
		s.refuse(501, "5.5.4", "syntax: RCPT TO:<name@example.org>")
		return
	case s.server.options.Kind != Returns:
		s.mailboxRecipient(path, params)
		return
	case params != "":
		s.refuse(555, "5.5.4", "unknown parameter")
		return
	}
	to, ok := s.server.recipient(path)
	if !ok {
		var err error
		if to, ok, err = s.server.foreignRecipient(path); err != nil {
			s.refuse(451, "4.3.0", "the address cannot be checked now; try again later")
			return
		}
	}
	switch {
	case !ok:
		s.server.counters.refused.Add(1)
		s.refuse(550, "5.1.1", "no such recipient")
	case slices.ContainsFunc(s.mail.to, func(other recipient) bool { return other.address == to.address }):
		s.reply(250, "2.1.5", "ok")
	case len(s.mail.to) >= MaxRecipients:
		s.refuse(452, "4.5.3", "a message can have at most %d recipients", MaxRecipients)
	default:
		s.mail.to = append(s.mail.to, to)
		s.reply(250, "2.1.5", "ok")
	}
}

// foreignRecipient parses the path of RCPT as an address that another system signed.
func (s *Server) foreignRecipient(path string) (to recipient, ok bool, err error) {
	local, domain, has := strings.Cut(path, "@")
	if s.options.Foreign == nil || !has || !s.ours(domain) {
		return recipient{}, false, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, takeTimeout)
	defer cancel()
	kind, known, err := s.options.Foreign(ctx, local)
	return recipient{address: local + "@" + strings.ToLower(domain), kind: kind}, known, err
}

// recipient parses the path of RCPT. The only recipients are postmaster, abuse and signed local
// parts at the domains of the server. It accepts no routes, percent signs, quotes or other forms
// of addresses.
func (s *Server) recipient(path string) (recipient, bool) {
	local, domain, has := strings.Cut(path, "@")
	if !has && strings.EqualFold(local, "postmaster") { // RFC 5321, section 4.5.1
		return recipient{address: "postmaster", person: true}, true
	}
	if !has || !s.ours(domain) {
		return recipient{}, false
	}
	lower := strings.ToLower(local)
	to := recipient{address: lower + "@" + strings.ToLower(domain)}
	switch lower {
	case "postmaster":
		to.person = true
		return to, true
	case "abuse": // RFC 2142; providers report complaints there
		to.person, to.kind = true, bounce.Complaint
		return to, true
	}
	kind, delivery, shared, err := s.options.Verify(local)
	if err != nil {
		return recipient{}, false
	}
	to.delivery, to.shared = delivery, shared
	switch kind {
	case bounceKind:
		to.kind = bounce.Bounce
	case unsubscribeKind:
		to.kind = bounce.Unsubscribe
	default:
		return recipient{}, false
	}
	return to, true
}
