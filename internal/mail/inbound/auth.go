package inbound

import (
	"context"
	"encoding/base64"
	"net/netip"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
)

// authenticate executes AUTH (RFC 4954).
func (s *session) authenticate(arg string) {
	mechanism, initial, hasInitial := strings.Cut(strings.TrimSpace(arg), " ")
	switch {
	case s.server.options.Kind != Submission:
		s.refuse(502, "5.5.1", "AUTH is not supported")
		return
	case s.hello == "":
		s.refuse(503, "5.5.1", "send EHLO first")
		return
	case !s.secure:
		s.refuse(538, "5.7.11", "start TLS with STARTTLS first")
		return
	case s.account != nil:
		s.refuse(503, "5.5.1", "you are logged in already")
		return
	case s.mail != nil:
		s.refuse(503, "5.5.1", "AUTH is not permitted between MAIL and the message")
		return
	case s.unsynchronised("AUTH"):
		return
	}
	ctx, cancel := context.WithTimeout(s.server.ctx, takeTimeout)
	defer cancel()
	var account mailbox.Account
	var err error
	switch strings.ToUpper(mechanism) {
	case "PLAIN":
		account, err = s.plain(ctx, initial, hasInitial)
	case "SCRAM-SHA-256":
		account, err = s.scram(ctx, initial, hasInitial)
	default:
		s.refuse(504, "5.5.4", "the mechanisms are SCRAM-SHA-256 and PLAIN")
		return
	}
	switch {
	case s.over:
	case err == nil:
		s.account, s.refused = &account, 0
		s.reply(235, "2.7.0", "logged in")
	default:
		s.refuseLogin(err)
	}
}

// refuseLogin writes the reply for an error of a login.
func (s *session) refuseLogin(err error) {
	text := err.Error()
	switch fanfare.CodeOf(err) {
	case fanfare.Invalid:
		s.refuse(501, "5.5.2", "%s", text)
	case fanfare.Unauthenticated:
		s.server.counters.wrongLogins.Add(1)
		s.refuse(535, "5.7.8", "%s", text)
	case fanfare.RateLimited:
		s.server.counters.wrongLogins.Add(1)
		s.refuse(454, "4.7.0", "%s", text)
	case fanfare.Forbidden:
		s.refuse(535, "5.7.13", "%s", text)
	default:
		s.server.options.Logger.Warn("cannot check a login; the peer was asked to retry", "peer", s.peer, "error", err)
		s.refuse(454, "4.7.0", "logins cannot be checked now; try again later")
	}
}

func (s *session) remote() netip.Addr {
	at, _ := netip.ParseAddr(s.peer) // the zero address is one more address
	return at
}

func (s *session) plain(ctx context.Context, initial string, hasInitial bool) (mailbox.Account, error) {
	message, err := decodeResponse(initial)
	if !hasInitial {
		message, err = s.ask(nil)
	}
	if err != nil {
		return mailbox.Account{}, err
	}
	user, password, err := apppassword.ParsePlain(message)
	if err != nil {
		return mailbox.Account{}, err
	}
	return s.server.options.Logins.Plain(ctx, user, password, s.remote())
}

func (s *session) scram(ctx context.Context, initial string, hasInitial bool) (mailbox.Account, error) {
	talk := s.server.options.Logins.SCRAM(ctx, s.remote())
	response, err := decodeResponse(initial)
	if !hasInitial {
		response, err = s.ask(nil)
	}
	for err == nil {
		challenge, done, failed := talk.Next(response)
		if failed != nil || done {
			return talk.Account(), failed
		}
		response, err = s.ask(challenge)
	}
	return mailbox.Account{}, err
}

// ask sends a challenge and reads the response. If the session ends, s.over is set.
func (s *session) ask(challenge []byte) ([]byte, error) {
	s.reply(334, "", "%s", base64.StdEncoding.EncodeToString(challenge))
	if err := s.out.Flush(); err != nil {
		s.over = true
		return nil, err
	}
	line, _, err := s.in.next(maxCommandBytes)
	if err != nil {
		s.end(err)
		return nil, err
	}
	if string(line) == "*" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the login was cancelled"}
	}
	return decodeResponse(string(line))
}

// decodeResponse decodes a response; = is an empty initial one. The result is never nil.
func decodeResponse(text string) ([]byte, error) {
	if text == "=" {
		text = ""
	}
	response, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the response is not base64"}
	}
	return response, nil
}
