package imap

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mailbox"
)

// canLogIn reports whether the client may send a password.
func (s *session) canLogIn() bool {
	return s.secure || s.server.trusts(s.peer)
}

func (s *session) login(a *syntax.Login) status {
	if !s.canLogIn() {
		return s.refuseInsecure()
	}
	account, err := s.server.o.Login.Plain(s.ctx, a.User, a.Password, s.peer)
	return s.authenticated(account, err)
}

func (s *session) refuseInsecure() status {
	if s.server.o.TLS == nil {
		return no("PRIVACYREQUIRED", "logins need TLS, which this server does not have: ask the operator to set imap_tls_cert")
	}
	return no("PRIVACYREQUIRED", "logins need TLS: use STARTTLS or the port for implicit TLS")
}

func (s *session) authenticate(a *syntax.Authenticate) status {
	if a.Mechanism != "PLAIN" && a.Mechanism != "SCRAM-SHA-256" {
		return no("CANNOT", "the mechanism %s is not available: use SCRAM-SHA-256 or PLAIN", a.Mechanism)
	}
	if !s.canLogIn() {
		return s.refuseInsecure()
	}
	if a.Mechanism == "PLAIN" {
		return s.authenticatePlain(a.Initial)
	}
	exchange := s.server.o.Login.Scram(s.ctx, s.peer)
	response := a.Initial
	if response == nil {
		var answer *status
		if response, answer = s.challenge(nil); answer != nil {
			return *answer
		}
	}
	for {
		challenge, done, err := exchange.Next(response)
		if err != nil {
			return s.authenticated(mailbox.Account{}, err)
		}
		if done && len(challenge) == 0 {
			return s.authenticated(exchange.Account(), nil)
		}
		var answer *status
		if response, answer = s.challenge(challenge); answer != nil {
			return *answer
		}
		if done { // the client has confirmed the last message of the server
			return s.authenticated(exchange.Account(), nil)
		}
	}
}

// challenge sends a challenge and reads the response of the client.
func (s *session) challenge(data []byte) (response []byte, answer *status) {
	s.out = append(s.out, "+ "...)
	s.out = base64.StdEncoding.AppendEncode(s.out, data)
	s.out = append(s.out, '\r', '\n')
	wrong := bad("the response is not valid base64")
	if s.flush() != nil {
		return nil, &wrong
	}
	line, err := s.in.line(nil, maxLineBytesBefore)
	if err != nil {
		s.over = true
		wrong = bad("the response is incomplete or too long")
		return nil, &wrong
	}
	if string(line) == "*" {
		wrong = bad("the authentication was cancelled")
		return nil, &wrong
	}
	if response, err = base64.StdEncoding.DecodeString(string(line)); err != nil {
		return nil, &wrong
	}
	return response, nil
}

func (s *session) authenticatePlain(response []byte) status {
	if response == nil {
		var answer *status
		if response, answer = s.challenge(nil); answer != nil {
			return *answer
		}
	}
	parts := strings.Split(string(response), "\x00")
	if len(parts) != 3 {
		return bad("the response is not valid for PLAIN (RFC 4616)")
	}
	if parts[0] != "" && parts[0] != parts[1] {
		return no("AUTHORIZATIONFAILED", "an account cannot act for another one: leave the authorization identity empty")
	}
	account, err := s.server.o.Login.Plain(s.ctx, parts[1], parts[2], s.peer)
	return s.authenticated(account, err)
}

// authenticated ends an authentication. Failures are answered slowly, so that guesses take time.
func (s *session) authenticated(account mailbox.Account, err error) status {
	if err == nil {
		if err := s.server.loggedIn(s, account.ID); err != nil {
			return no("LIMIT", "%s", err)
		}
		s.account, s.loggedIn, s.failures = account, true, 0
		s.deadlines.Lock()
		s.ends = time.Time{}
		s.deadlines.Unlock()
		s.server.metrics.logins.WithLabelValues("ok").Inc()
		return okCode("CAPABILITY "+s.capabilities(), "you are logged in")
	}
	if problem, is := errors.AsType[*fanfare.Error](err); is && problem.Code == fanfare.Unavailable {
		s.server.metrics.logins.WithLabelValues("unavailable").Inc()
		return no("UNAVAILABLE", "%s", userText(problem))
	}
	s.server.metrics.logins.WithLabelValues("refused").Inc()
	delay := min(s.server.o.Limits.FailureDelay<<min(s.refused, 10), maxFailureDelay)
	s.refused++
	select {
	case <-time.After(delay):
	case <-s.ctx.Done():
	}
	answer := no("AUTHENTICATIONFAILED", "the user name or the app password is wrong: create an app password for this program")
	if problem, is := errors.AsType[*fanfare.Error](err); is {
		answer.text = userText(problem)
		if problem.Code == fanfare.RateLimited {
			answer.code = "LIMIT"
		}
	}
	if s.refused >= maxFailuresBefore {
		s.over = true
		s.untagged("BYE too many failed logins")
	}
	return answer
}

// userText returns the message of an error and its hint in one line.
func userText(e *fanfare.Error) string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

func (s *session) startTLS() status {
	switch {
	case s.server.o.TLS == nil:
		return no("CANNOT", "TLS is not available")
	case s.secure:
		return bad("TLS is already active")
	case s.in.buffered():
		s.over = true
		return bad("wait for the response to STARTTLS before you send more")
	}
	return status{kind: "OK", code: "", text: "begin TLS now"}
}

// capabilities returns the names of the extensions that the client can use now.
func (s *session) capabilities() string {
	list := []string{"IMAP4rev2", "IMAP4rev1", "LITERAL+", "ID", "SASL-IR", "ENABLE"}
	if !s.loggedIn {
		if s.server.o.TLS != nil && !s.secure {
			list = append(list, "STARTTLS")
		}
		if s.canLogIn() {
			list = append(list, "AUTH=SCRAM-SHA-256", "AUTH=PLAIN")
		} else {
			list = append(list, "LOGINDISABLED")
		}
		return strings.Join(list, " ")
	}
	list = append(list, "IDLE", "UIDPLUS", "MOVE", "ESEARCH", "SEARCHRES", "WITHIN", "LIST-EXTENDED", "LIST-STATUS", "CHILDREN", "NAMESPACE", "SPECIAL-USE", "CREATE-SPECIAL-USE",
		"UNSELECT", "CONDSTORE", "QRESYNC", "QUOTA", "QUOTA=RES-STORAGE", "QUOTA=RES-MESSAGE", "BINARY", "MULTIAPPEND", "STATUS=SIZE", "SAVEDATE", "OBJECTID", "UTF8=ACCEPT",
		"APPENDLIMIT="+decimal(s.server.o.Limits.MaxMessageBytes))
	if !s.compressed {
		list = append(list, "COMPRESS=DEFLATE")
	}
	return strings.Join(list, " ")
}

// enable turns on extensions and says which ones are new (RFC 5161).
func (s *session) enable(a *syntax.Enable) status {
	hadCondstore := s.condstore
	var enabled []string
	for _, name := range a.Names {
		switch name {
		case "CONDSTORE":
			s.condstore = true
		case "QRESYNC":
			s.condstore, s.qresync = true, true
		case "UTF8=ACCEPT":
			s.utf8 = true
		case "IMAP4REV2":
			s.rev2, s.utf8 = true, true
			name = "IMAP4rev2"
		default:
			continue
		}
		if !slices.Contains(s.enabled, name) {
			s.enabled = append(s.enabled, name)
			enabled = append(enabled, name)
		}
	}
	if s.condstore && !hadCondstore && s.selected != nil {
		s.highest()
	}
	s.out = append(s.out, "* ENABLED"...)
	for _, name := range enabled {
		s.out = append(s.out, ' ')
		s.out = append(s.out, name...)
	}
	s.out = append(s.out, '\r', '\n')
	return ok("ENABLE completed")
}

// logOut ends the session.
func (s *session) logOut() status {
	s.unselect()
	s.untagged("BYE see you again")
	s.over = true
	return ok("LOGOUT completed")
}
