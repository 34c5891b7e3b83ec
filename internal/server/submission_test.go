package server_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
	ours "fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/sink"
)

func TestOwnersOfMailboxesSendMailToOtherServers(t *testing.T) {
	cert, key, pool := certificate(t)
	for name, inject := range map[string]sink.Inject{"accepted": {}, "refused": {PermFail: 1}} {
		t.Run(name, func(t *testing.T) {
			at := &listeners{where: map[string]string{}}
			s := start(t, inject)
			s.log = at
			s.restartWith(func(c *config.Config) {
				c.SubmissionsListen, c.SubmissionTLSCert, c.SubmissionTLSKey, c.InboundName, c.IMAPListen = "127.0.0.1:0", cert, key, "mx.example.org", "127.0.0.1:0"
			})
			const document = "service: news\nchannels:\n  email: {driver: smtp, relay: \"RELAY\", from: news@example.org, rate: unlimited, retry: [1s]SUBMISSION}\n"
			apply := func(submission string) {
				t.Helper()
				s.must(200, "POST", "/v1/apply", "application/yaml", strings.NewReplacer("RELAY", s.addr, "SUBMISSION", submission).Replace(document))
			}
			apply("")
			var z zone
			signed := ", dkim: [{" + z.key(t, "first", ours.Ed25519) + "}]"
			s.must(201, "PUT", "/v1/subscribers/joe", "application/json", `{"addresses":[{"kind":"mail","address":"joe@example.org"}]}`)
			var made struct{ Password string }
			if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/mailboxes/joe@example.org/app-passwords", "application/json", `{}`)), &made); err != nil {
				t.Fatal(err)
			}
			d := dial(t, at.where["submissions"], &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
			d.until("", "220 ")
			d.until("EHLO peer.example.com", "250 ")
			d.until("MAIL FROM:<joe@example.org>", "530 ")
			d.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00joe@example.org\x00"+made.Password)), "235 ")
			d.until("MAIL FROM:<ann@example.org>", "550 5.7.1")
			d.until("MAIL FROM:<joe@example.org>", "250 ")
			d.until("RCPT TO:<ann@example.net>", "550 5.7.1") // nobody may send to others
			apply(", submission: [example.com]")
			d.until("RCPT TO:<ann@example.net>", "550 5.7.1") // the owners of other addresses may
			apply(", submission: [example.com, example.org]" + signed)
			d.until("RCPT TO:<ann@example.net>", "250 ")
			d.until("RCPT TO:<joe@example.org>", "250 ")
			d.until("DATA", "354 ")
			d.until("From: eve@example.org\r\n\r\nbody\r\n.", "550 5.7.1")
			d.until("MAIL FROM:<joe@example.org>", "250 ")
			d.until("RCPT TO:<Ann@EXAMPLE.net>", "250 ")
			d.until("RCPT TO:<joe@example.org>", "250 ")
			d.until("DATA", "354 ")
			d.until("From: Joe <joe@example.org>\r\nTo: ann@example.net\r\nBcc: eve@example.net\r\nSubject: hello\r\n\r\n..line\r\n.", "250 ")

			imap := dial(t, at.where["imap"], nil)
			imap.until("", "* OK")
			imap.until("a LOGIN joe@example.org "+made.Password, "a OK")
			if name == "refused" {
				s.eventually("a report in the inbox of the sender", func() bool {
					return strings.Contains(imap.until("b STATUS INBOX (MESSAGES)", "b OK"), "MESSAGES 2")
				})
				imap.until("c SELECT INBOX", "c OK")
				if got := imap.until("d FETCH 2 BODY.PEEK[]", "d OK"); !strings.Contains(got, "Final-Recipient: rfc822;Ann@example.net\r\nAction: failed\r\nStatus: 5.") {
					t.Errorf("the report is %q", got)
				}
				return
			}
			s.eventually("the message at the other server", func() bool { return len(s.sink.Messages()) > 0 })
			m := s.sink.Messages()[0]
			if got := z.signers(t, m.Body); len(got) != 1 || got[0] != "first" {
				t.Errorf("the message is signed by %q", got)
			}
			head, body, _ := strings.Cut(string(m.Body), "\r\n\r\n")
			if m.From != "joe@example.org" || len(m.To) != 1 || m.To[0] != "Ann@example.net" || body != ".line\r\n" || strings.Contains(head, "eve@example.net") {
				t.Errorf("the message is %q from %s to %q", m.Body, m.From, m.To)
			}
			for _, want := range []string{"Received: from peer.example.com", "Message-ID: <", "Date: ", "From: Joe <joe@example.org>\r\nTo: ann@example.net\r\nSubject: hello"} {
				if !strings.Contains(head, want) {
					t.Errorf("the header lacks %q: %s", want, head)
				}
			}
			if strings.Contains(head, "List-Unsubscribe") || strings.Contains(head, "Return-Path") {
				t.Errorf("the header is %s", head)
			}
			events := s.must(200, "GET", "/v1/broadcasts", "", "")
			if strings.Contains(events, "hello") {
				t.Errorf("the API shows the message: %s", events)
			}
		})
	}
}

func TestAnErasureCancelsMessagesThatThePersonHasSent(t *testing.T) {
	cert, key, pool := certificate(t)
	at := &listeners{where: map[string]string{}}
	s := start(t, sink.Inject{TempFail: 1, TempFailAlways: true})
	s.log = at
	s.restartWith(func(c *config.Config) {
		c.SubmissionsListen, c.SubmissionTLSCert, c.SubmissionTLSKey, c.InboundName = "127.0.0.1:0", cert, key, "mx.example.org"
	})
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  email: {driver: smtp, relay: \""+s.addr+"\", from: news@example.org, rate: unlimited, retry: [1h], submission: [example.org]}\n")
	send := func(name string) {
		t.Helper()
		s.must(201, "PUT", "/v1/subscribers/"+name, "application/json", `{"addresses":[{"kind":"mail","address":"`+name+`@example.org"}]}`)
		var made struct{ Password string }
		if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/mailboxes/"+name+"@example.org/app-passwords", "application/json", `{}`)), &made); err != nil {
			t.Fatal(err)
		}
		d := dial(t, at.where["submissions"], &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
		d.until("", "220 ")
		d.until("EHLO peer.example.com", "250 ")
		d.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+name+"@example.org\x00"+made.Password)), "235 ")
		d.until("MAIL FROM:<"+name+"@example.org>", "250 ")
		d.until("RCPT TO:<ann@example.net>", "250 ")
		d.until("RCPT TO:<bob@example.net>", "250 ")
		d.until("DATA", "354 ")
		d.until("From: "+name+"@example.org\r\nTo: ann@example.net\r\nSubject: hello\r\n\r\nbody\r\n.", "250 ")
	}
	send("joe")
	send("eve") // stays
	broadcasts := func() []fanfare.Broadcast {
		t.Helper()
		var all struct{ Broadcasts []fanfare.Broadcast }
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/broadcasts", "", "")), &all); err != nil {
			t.Fatal(err)
		}
		return all.Broadcasts
	}
	count := func(state fanfare.State) (n int64) {
		for _, b := range broadcasts() {
			n += b.Counts[state]
		}
		return n
	}
	s.eventually("both messages to wait for another attempt", func() bool { return count(fanfare.Deferred) == 4 })
	s.must(200, "POST", "/v1/subscribers/joe/erase", "application/json", "{}")
	s.eventually("the messages of joe to be cancelled", func() bool { return count(fanfare.Cancelled) == 2 })
	if n := count(fanfare.Deferred); n != 2 {
		t.Errorf("%d deliveries wait, want those of eve: %+v", n, broadcasts())
	}
}
