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

func TestMailboxesHaveAliases(t *testing.T) {
	cert, key, pool := certificate(t)
	at := &listeners{where: map[string]string{}}
	s := start(t, sink.Inject{})
	s.log = at
	s.restartWith(func(c *config.Config) {
		c.SubmissionsListen, c.SubmissionTLSCert, c.SubmissionTLSKey, c.InboundName, c.LMTPListen = "127.0.0.1:0", cert, key, "mx.example.org", "127.0.0.1:0"
	})
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  email: {driver: smtp, relay: \""+s.addr+"\", from: news@example.org, rate: unlimited, submission: [example.org]}\n")
	for _, name := range []string{"joe", "ann"} {
		s.must(201, "PUT", "/v1/mailboxes/"+name+"@example.org", "application/json", "{}")
	}
	s.must(201, "PUT", "/v1/subscribers/bob", "application/json", `{"addresses":[{"kind":"mail","address":"bob@example.org"}]}`) // without a mailbox
	var made struct{ Password string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/mailboxes/joe@example.org/app-passwords", "application/json", `{}`)), &made); err != nil {
		t.Fatal(err)
	}

	const path = "/v1/mailboxes/joe@example.org/aliases"
	if got := s.must(201, "PUT", path+"/Sales@Example.org", "", ""); !strings.Contains(got, `"address":"sales@example.org"`) {
		t.Errorf("the alias is %s", got)
	}
	s.must(200, "PUT", path+"/sales@example.org", "", "")
	s.must(201, "PUT", path+"/joe@elsewhere.example.com", "", "")
	for _, taken := range []string{"ann@example.org", "ANN@example.org", "joe@example.org", "Joe@example.org", "bob@example.org"} {
		s.must(409, "PUT", path+"/"+taken, "", "")
	}
	for _, wrong := range []string{"sales", "%22sales%22@example.org", "a%0Ab@example.org"} {
		s.must(422, "PUT", path+"/"+wrong, "", "")
	}
	s.must(409, "PUT", "/v1/mailboxes/ann@example.org/aliases/SALES@example.org", "", "")
	s.must(409, "PUT", "/v1/mailboxes/sales@example.org", "application/json", "{}") // a mailbox with the address
	s.must(404, "PUT", "/v1/mailboxes/nobody@example.org/aliases/x@example.org", "", "")
	if list := s.must(200, "GET", path, "", ""); strings.Count(list, `"address"`) != 2 || !strings.Contains(list, `"sales@example.org"`) {
		t.Errorf("the aliases are %s", list)
	}

	inbox := func(address, count string) {
		t.Helper()
		if got := s.must(200, "GET", "/v1/mailboxes/"+address, "", ""); !strings.Contains(got, `"quota":{"max_bytes":0,"bytes":`) || !strings.Contains(got, `"messages":`+count+`}`) {
			t.Errorf("%s has %s, want %s messages", address, got, count)
		}
	}
	lmtp := dial(t, at.where["lmtp"], nil)
	lmtp.until("", "220 ")
	lmtp.until("LHLO peer.example.com", "250 ")
	lmtp.until("MAIL FROM:<someone@example.com>", "250 ")
	lmtp.until("RCPT TO:<SALES@example.org>", "250 ")
	lmtp.until("RCPT TO:<sales+x@example.org>", "550 5.1.1")
	lmtp.until("RCPT TO:<x@elsewhere.example.com>", "550 5.1.1")
	lmtp.until("DATA", "354 ")
	lmtp.until("Subject: first\r\n\r\nbody\r\n.", "250 ")
	inbox("joe@example.org", "1")

	d := dial(t, at.where["submissions"], &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
	d.until("", "220 ")
	d.until("EHLO peer.example.com", "250 ")
	d.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00sales@example.org\x00"+made.Password)), "535 ") // an alias is no login
	d.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00joe@example.org\x00"+made.Password)), "235 ")
	d.until("MAIL FROM:<ann@example.org>", "550 5.7.1")
	d.until("MAIL FROM:<joe@elsewhere.example.com>", "250 ")
	d.until("RCPT TO:<carl@example.net>", "550 5.7.1") // no channel permits the domain of the alias
	d.until("RCPT TO:<ann@example.org>", "250 ")
	d.until("DATA", "354 ")
	d.until("From: sales@example.org\r\nSubject: second\r\n\r\nbody\r\n.", "250 ")
	inbox("ann@example.org", "1")
	d.until("MAIL FROM:<sales@example.org>", "250 ")
	d.until("RCPT TO:<carl@example.net>", "250 ")
	d.until("DATA", "354 ")
	d.until("From: joe@elsewhere.example.com\r\nSubject: refused\r\n\r\nbody\r\n.", "550 5.7.1")
	d.until("MAIL FROM:<sales@example.org>", "250 ")
	d.until("RCPT TO:<carl@example.net>", "250 ")
	d.until("DATA", "354 ")
	d.until("From: sales@example.org\r\nSubject: third\r\n\r\nbody\r\n.", "250 ")

	if export := s.must(200, "GET", "/v1/mailboxes/joe@example.org/export", "", ""); !strings.Contains(export, `"aliases":["joe@elsewhere.example.com","sales@example.org"]`) {
		t.Errorf("the export is %s", export)
	}
	s.must(204, "DELETE", path+"/SALES@example.org", "", "")
	s.must(404, "DELETE", path+"/sales@example.org", "", "")
	s.must(404, "DELETE", "/v1/mailboxes/ann@example.org/aliases/joe@elsewhere.example.com", "", "")
	audit := s.must(200, "GET", "/v1/audit?kind=mailbox", "", "")
	if strings.Count(audit, `"add-alias"`) != 2 || strings.Count(audit, `"remove-alias"`) != 1 || strings.Contains(audit, "@") {
		t.Errorf("the audit log is %s", audit)
	}
}
