package submission

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// A Result is what happened to a message for one recipient.
type Result struct {
	Address  string
	Original string // ORCPT (RFC 3461), such as rfc822;joe@example.org, or ""
	Failed   bool
	Relayed  bool   // another server accepted it
	Code     int    // of SMTP; 0: there was no reply
	Enhanced string // such as 5.1.1, or ""
	Text     string // one line
}

// A Report tells a sender what happened to a message (RFC 3464).
type Report struct {
	Name       string // of the server
	To         string // the sender
	EnvelopeID string // ENVID, or ""
	Results    []Result
	Message    []byte // the submitted message, or its header
	HeaderOnly bool   // Message is a header
}

// Text returns the report as a message.
func (r *Report) Text(now time.Time) []byte {
	at := now.Format(time.RFC1123Z)
	boundary := "report-" + rand.Text()
	var b bytes.Buffer
	subject := "Delivered"
	for i := range r.Results {
		if r.Results[i].Failed {
			subject = "Not delivered"
		}
	}
	fmt.Fprintf(&b, "Return-Path: <>\r\nFrom: Mail delivery <postmaster@%s>\r\nTo: <%s>\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s@%s>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=\"%s\"\r\n\r\n", r.Name, r.To, subject, at, strings.ToLower(rand.Text()), r.Name, boundary)
	fmt.Fprintf(&b, "--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n", boundary)
	for i := range r.Results {
		if one := &r.Results[i]; one.Failed {
			fmt.Fprintf(&b, "Your message was not delivered to %s:\r\n%s.\r\n\r\n", one.Address, strings.TrimSuffix(oneLine(one.Text), "."))
		} else {
			fmt.Fprintf(&b, "Your message was %s %s.\r\n\r\n", map[bool]string{false: "delivered to", true: "accepted by the mail server of"}[one.Relayed], one.Address)
		}
	}
	fmt.Fprintf(&b, "--%s\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns;%s\r\nArrival-Date: %s\r\n", boundary, r.Name, at)
	if r.EnvelopeID != "" {
		fmt.Fprintf(&b, "Original-Envelope-Id: %s\r\n", oneLine(r.EnvelopeID))
	}
	for i := range r.Results {
		one := &r.Results[i]
		b.WriteString("\r\n")
		if one.Original != "" {
			fmt.Fprintf(&b, "Original-Recipient: %s\r\n", oneLine(one.Original))
		}
		action, status := "delivered", "2.0.0"
		if one.Relayed {
			action = "relayed"
		}
		if one.Failed {
			action, status = "failed", "5.0.0" // the server does not try again
			if len(one.Enhanced) > 1 {
				status = "5" + one.Enhanced[1:]
			}
		}
		fmt.Fprintf(&b, "Final-Recipient: rfc822;%s\r\nAction: %s\r\nStatus: %s\r\n", one.Address, action, status)
		switch {
		case !one.Failed:
		case one.Code > 0 && one.Enhanced != "":
			fmt.Fprintf(&b, "Diagnostic-Code: smtp;%d %s %s\r\n", one.Code, one.Enhanced, oneLine(one.Text))
		case one.Code > 0:
			fmt.Fprintf(&b, "Diagnostic-Code: smtp;%d %s\r\n", one.Code, oneLine(one.Text))
		}
	}
	if r.HeaderOnly {
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: text/rfc822-headers\r\n\r\n%s", boundary, r.Message)
	} else {
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: message/rfc822\r\n\r\n%s", boundary, r.Message)
	}
	fmt.Fprintf(&b, "\r\n--%s--\r\n", boundary)
	return b.Bytes()
}

// oneLine replaces the characters that could end a header field: replies come from other servers.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
