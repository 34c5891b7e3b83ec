package inbound

import (
	"strings"

	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mail/submission"
)

// notify says which reports the sender wants (RFC 3461, section 4.1).
type notify uint8

const (
	notifyDefault notify = 0 // failures
	notifyNever   notify = 1 << (iota - 1)
	notifySuccess
	notifyFailure
	notifyDelay
)

var notifyNames = map[string]notify{"NEVER": notifyNever, "SUCCESS": notifySuccess, "FAILURE": notifyFailure, "DELAY": notifyDelay}

// dsnParameter applies RET or ENVID of MAIL; code is 0, or that of the error.
func (m *mail) dsnParameter(p parameter) (code int, enhanced, text string) {
	if p.key == "RET" {
		switch strings.ToUpper(p.value) {
		case "HDRS":
			m.headerOnly = true
		case "FULL":
		default:
			return 501, "5.5.4", "RET must be FULL or HDRS"
		}
		return 0, "", ""
	}
	id, ok := decodeXtext(p.value)
	if !ok || id == "" || len(p.value) > 100 {
		return 501, "5.5.4", "ENVID must be xtext of at most 100 characters"
	}
	m.envelopeID = id
	return 0, "", ""
}

// parameters applies the parameters of RCPT.
func (to *recipient) parameters(text string, kind Kind) *smtpError {
	for _, p := range parameters(text) {
		switch {
		case kind != Submission:
			return &smtpError{555, "5.5.4", "unknown parameter"}
		case p.key == "NOTIFY":
			for one := range strings.SplitSeq(strings.ToUpper(p.value), ",") {
				n, ok := notifyNames[one]
				if !ok {
					return &smtpError{501, "5.5.4", "NOTIFY must be NEVER, or some of SUCCESS, FAILURE and DELAY"}
				}
				to.notify |= n
			}
			if to.notify&notifyNever != 0 && to.notify != notifyNever {
				return &smtpError{501, "5.5.4", "NOTIFY=NEVER permits no other value"}
			}
		case p.key == "ORCPT":
			kind, address, ok := strings.Cut(p.value, ";")
			decoded, valid := decodeXtext(address)
			if !ok || !valid || kind == "" || decoded == "" || len(p.value) > 500 || strings.Trim(strings.ToLower(kind), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				return &smtpError{501, "5.5.4", "ORCPT must be a type, a semicolon and xtext, such as rfc822;joe@example.org"}
			}
			to.original = kind + ";" + decoded
		default:
			return &smtpError{555, "5.5.4", "unknown parameter"}
		}
	}
	return nil
}

// decodeXtext decodes +XX (RFC 3461, section 4). The result has only printable ASCII characters, so that it fits into a field.
func decodeXtext(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case '=':
			return "", false
		case '+':
			if i+2 >= len(text) {
				return "", false
			}
			high, low := strings.IndexByte("0123456789ABCDEF", text[i+1]), strings.IndexByte("0123456789ABCDEF", text[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			c = byte(high<<4 | low)
			i += 2
		}
		if c < ' ' || c > '~' {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// reported returns the reply to a submitted message. If some recipients failed, the sender gets a report about them in the own mailbox; so
// does a sender who asked for reports of success.
func (s *session) reported(m *mail, text []byte, results []*smtpError) *smtpError {
	var failed, succeeded, wanted []int
	for i, e := range results {
		n := m.to[i].notify
		if e == nil {
			succeeded = append(succeeded, i)
		} else {
			failed = append(failed, i)
		}
		if e == nil && n&notifySuccess != 0 && !m.to[i].outside || e != nil && (n == notifyDefault || n&notifyFailure != 0) {
			wanted = append(wanted, i)
		}
	}
	if len(succeeded) == 0 {
		return results[failed[0]]
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := s.server.store(s.report(m, text, results, wanted), s.owner())[0]; err != nil {
		if len(failed) > 0 { // without the report the failure would be lost, so the sender tries again
			return s.failed(s.account.ID, err)
		}
		s.server.options.Logger.Warn("cannot store a delivery report", "account", s.account.ID, "error", err)
	}
	return nil
}

// report returns a delivery report (RFC 3464) about some recipients of a message.
func (s *session) report(m *mail, text []byte, results []*smtpError, about []int) []byte {
	r := submission.Report{Name: s.server.options.Name, To: m.from, EnvelopeID: m.envelopeID, Message: text, HeaderOnly: m.headerOnly}
	if m.headerOnly {
		r.Message = text[:mimetree.Parse(text).Header.To]
	}
	for _, i := range about {
		one := submission.Result{Address: m.to[i].address, Original: m.to[i].original}
		if e := results[i]; e != nil {
			one.Failed, one.Code, one.Enhanced, one.Text = true, e.code, e.enhanced, e.text
		}
		r.Results = append(r.Results, one)
	}
	return r.Text(s.server.options.Clock.Now())
}
