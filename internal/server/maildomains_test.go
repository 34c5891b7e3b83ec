package server_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
)

func TestServicesListTheirMailDomains(t *testing.T) {
	cert, key, pool := certificate(t)
	at := &listeners{where: map[string]string{}}
	s := start(t, sink.Inject{})
	s.log = at
	s.restartWith(func(c *config.Config) {
		c.SubmissionsListen, c.SubmissionTLSCert, c.SubmissionTLSKey, c.InboundName, c.LMTPListen = "127.0.0.1:0", cert, key, "mx.example.org", "127.0.0.1:0"
	})
	apply := func(status int, document string) string {
		t.Helper()
		return s.must(status, "POST", "/v1/apply", "application/yaml", document)
	}
	channel := "channels:\n  email: {driver: smtp, relay: \"" + s.addr + "\", from: news@example.org, rate: unlimited, submission: [example.org]}\n"
	apply(200, "service: news\n"+channel)
	for _, name := range []string{"joe@example.org", "office@example.org", "ann@example.com"} {
		s.must(201, "PUT", "/v1/mailboxes/"+name, "application/json", "{}")
	}
	lmtp := dial(t, at.where["lmtp"], nil)
	lmtp.until("", "220 ")
	lmtp.until("LHLO peer.example.com", "250 ")
	replies := func(of map[string]string) {
		t.Helper()
		lmtp.until("RSET", "250 ")
		lmtp.until("MAIL FROM:<someone@example.com>", "250 ")
		for to, reply := range of {
			lmtp.until("RCPT TO:<"+to+">", reply)
		}
	}
	changed := func(to, reply string) { // domains and accounts are remembered for a second
		t.Helper()
		s.eventually("the reply "+reply, func() bool {
			lmtp.until("RSET", "250 ")
			lmtp.until("MAIL FROM:<someone@example.com>", "250 ")
			if _, err := lmtp.Write([]byte("RCPT TO:<" + to + ">\r\n")); err != nil {
				t.Fatal(err)
			}
			line, err := lmtp.in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return strings.HasPrefix(line, reply)
		})
	}
	replies(map[string]string{"joe@example.org": "250 ", "x@example.org": "550 5.1.1", "ann@example.com": "250 ", "x@example.net": "550 5.1.1"})

	apply(200, "service: news\nmail_domains:\n- {domain: Example.ORG, catch_all: office@example.org}\n- domain: example.net\n")
	if got := s.must(200, "GET", "/v1/services/news", "", ""); !strings.Contains(got, `"mail_domains":[{"domain":"example.org","catch_all":"office@example.org"},{"domain":"example.net"}]`) {
		t.Errorf("the service is %s", got)
	}
	changed("ann@example.com", "550 5.1.2")
	replies(map[string]string{"joe@example.org": "250 ", "x@example.org": "250 ", "ann@example.com": "550 5.1.2", "x@example.net": "550 5.1.1", "joe@sub.example.org": "550 5.1.2"})
	lmtp.until("RSET", "250 ")
	lmtp.until("MAIL FROM:<someone@example.com>", "250 ")
	lmtp.until("RCPT TO:<anybody@EXAMPLE.org>", "250 ")
	lmtp.until("DATA", "354 ")
	lmtp.until("Subject: for anybody\r\n\r\nbody\r\n.", "250 ")
	if got := s.must(200, "GET", "/v1/mailboxes/office@example.org", "", ""); !strings.Contains(got, `"messages":1}`) {
		t.Errorf("the catch-all has %s", got)
	}

	const aliases = "/v1/mailboxes/joe@example.org/aliases/"
	s.must(201, "PUT", aliases+"sales@example.net", "", "")
	if got := s.must(409, "PUT", aliases+"sales@example.com", "", ""); !strings.Contains(got, "example.com is not a mail domain of the service") {
		t.Errorf("an alias in another domain gets %s", got)
	}

	s.operator = true
	for document, want := range map[string]string{
		"service: other\nmail_domains: [{domain: example.net}]\n":                            "example.net is a mail domain of the service",
		"service: other\nmail_domains: [{domain: a.example}, {domain: A.example}]\n":         "is there twice",
		"service: other\nmail_domains: [{domain: a.example, catch_all: office@b.example}]\n": "is not in the domain",
		"service: other\nmail_domains: [{catch_all: office@b.example}]\n":                    "domain is missing",
		"service: other\nmail_domains: [{domain: a.example, catch_all: office}]\n":           "/mail_domains/0/catch_all",
		"service: other\nmail_domains: [{domain: \"a.example\\r\\n\"}]\n":                    "/mail_domains/0/domain",
		"service: other\nmail_domains: {a.example: {}}\n":                                    "must be a list",
	} {
		status, body := s.call("POST", "/v1/apply", "application/yaml", document)
		if status != 422 && status != 409 || !strings.Contains(body, want) {
			t.Errorf("%q gets %d %s, want %q", document, status, body, want)
		}
	}

	s.operator = false
	var made struct{ Password string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/mailboxes/joe@example.org/app-passwords", "application/json", `{}`)), &made); err != nil {
		t.Fatal(err)
	}
	d := dial(t, at.where["submissions"], &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
	d.until("", "220 ")
	d.until("EHLO peer.example.com", "250 ")
	d.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00joe@example.org\x00"+made.Password)), "235 ")
	d.until("MAIL FROM:<joe@example.org>", "250 ")
	d.until("RCPT TO:<x@example.net>", "550 5.1.1") // in a domain of the service, it is not sent elsewhere
	d.until("RCPT TO:<ann@example.com>", "250 ")    // of another server, although there is a mailbox
	d.until("DATA", "354 ")
	d.until("From: joe@example.org\r\nSubject: outside\r\n\r\nbody\r\n.", "250 ")
	s.eventually("the message at the other server", func() bool {
		list := s.sink.Messages()
		return len(list) == 1 && list[0].To[0] == "ann@example.com"
	})

	apply(200, "service: news\nmail_domains: []\n")
	changed("ann@example.com", "250 ")
	replies(map[string]string{"x@example.org": "550 5.1.1", "ann@example.com": "250 "})
	audit := s.must(200, "GET", "/v1/audit?kind=service", "", "")
	if !strings.Contains(audit, "mail_domains") {
		t.Errorf("the audit log is %s", audit)
	}
}
