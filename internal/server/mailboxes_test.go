package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// listeners is a log handler that remembers the addresses of listeners by their name.
type listeners struct {
	slog.Handler
	mu    sync.Mutex
	where map[string]string
}

func (l *listeners) Handle(_ context.Context, r slog.Record) error {
	var name, at string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "listener":
			name = a.Value.String()
		case "listen":
			at = a.Value.String()
		}
		return true
	})
	if strings.Contains(r.Message, "IMAP") {
		name = "imap"
	}
	if name != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.where[name] = at
	}
	return nil
}

func (l *listeners) Enabled(context.Context, slog.Level) bool { return true }

func (l *listeners) WithAttrs([]slog.Attr) slog.Handler { return l }

// certificate writes a certificate for mx.example.org and its key to files.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"mx.example.org"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(leaf)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE " + "KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

// dialogue is a connection to a listener.
type dialogue struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, at string, secured *tls.Config) *dialogue {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if secured != nil {
		conn = tls.Client(conn, secured)
	}
	return &dialogue{t, conn, bufio.NewReader(conn)}
}

// until sends a line and reads lines up to one that begins with an end.
func (d *dialogue) until(line, end string) string {
	d.t.Helper()
	if line != "" {
		if _, err := d.Write([]byte(line + "\r\n")); err != nil {
			d.t.Fatal(err)
		}
	}
	var all strings.Builder
	for {
		got, err := d.in.ReadString('\n')
		all.WriteString(got)
		if err != nil {
			d.t.Fatalf("%q: %v after %q", line, err, all.String())
		}
		if strings.HasPrefix(got, end) {
			return all.String()
		}
		if len(got) > 3 && got[3] == ' ' && got[0] >= '4' && got[0] <= '5' {
			d.t.Fatalf("%q was answered %q", line, all.String())
		}
	}
}

func TestMailReachesMailProgramsThroughMailboxes(t *testing.T) {
	cert, key, pool := certificate(t)
	at := &listeners{where: map[string]string{}}
	s := &testServer{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), sink: sink.New(sink.Config{}), log: at}
	s.change = func(c *config.Config) {
		c.LMTPListen, c.SubmissionListen, c.SubmissionsListen, c.IMAPListen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		c.SubmissionTLSCert, c.SubmissionTLSKey, c.InboundName = cert, key, "mx.example.org"
	}
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\n")
	for _, name := range []string{"joe", "ann"} {
		s.must(201, "PUT", "/v1/subscribers/"+name, "application/json", `{"addresses":[{"kind":"mail","address":"`+name+`@example.org"}]}`)
	}

	const path = "/v1/mailboxes/joe@example.org/app-passwords"
	s.must(404, "GET", path, "", "")
	s.must(404, "POST", "/v1/mailboxes/nobody@example.org/app-passwords", "application/json", `{}`)
	s.must(422, "POST", path, "application/json", `{"name":"a\u0001b"}`)
	var made struct{ ID, User, Password, Name string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", path, "application/json", `{"name":"phone"}`)), &made); err != nil {
		t.Fatal(err)
	}
	if made.User != "joe@example.org" || made.Name != "phone" {
		t.Errorf("the app password is %+v", made)
	}
	if list := s.must(200, "GET", path, "", ""); strings.Contains(list, made.Password) || !strings.Contains(list, `"id":"`+made.ID+`"`) || !strings.Contains(list, `"name":"phone"`) {
		t.Errorf("the app passwords are %s", list)
	}

	lmtp := dial(t, at.where["lmtp"], nil)
	lmtp.until("", "220 mx.example.org LMTP")
	lmtp.until("LHLO peer.example.com", "250 ")
	lmtp.until("MAIL FROM:<news@example.com>", "250 ")
	lmtp.until("RCPT TO:<ann@example.org>", "550 5.1.1") // has no mailbox
	lmtp.until("RCPT TO:<joe@example.org>", "250 ")
	lmtp.until("DATA", "354 ")
	lmtp.until("Subject: first\r\n\r\nbody\r\n.", "250 ")

	submission := dial(t, at.where["submissions"], &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
	submission.until("", "220 mx.example.org ESMTP")
	submission.until("EHLO peer.example.com", "250 ")
	submission.until("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00joe@example.org\x00"+made.Password)), "235 ")
	submission.until("MAIL FROM:<joe@example.org>", "250 ")
	submission.until("RCPT TO:<ann@example.org>", "550 5.7.1")
	submission.until("RCPT TO:<joe@example.org>", "250 ")
	submission.until("DATA", "354 ")
	submission.until("From: joe@example.org\r\nSubject: second\r\n\r\nbody\r\n.", "250 ")

	imap := dial(t, at.where["imap"], nil)
	imap.until("", "* OK")
	imap.until("a LOGIN joe@example.org "+made.Password, "a OK")
	if got := imap.until("b SELECT INBOX", "b OK"); !strings.Contains(got, "* 2 EXISTS\r\n") {
		t.Errorf("the inbox has %q", got)
	}
	if got := imap.until("c FETCH 1:2 BODY.PEEK[HEADER.FIELDS (SUBJECT)]", "c OK"); !strings.Contains(got, "Subject: first") || !strings.Contains(got, "Subject: second") {
		t.Errorf("the messages are %q", got)
	}
	if used := s.must(200, "GET", path, "", ""); !strings.Contains(used, `"used_at":"`) {
		t.Errorf("the app password was used: %s", used)
	}
	metrics := s.must(200, "GET", "/metrics", "", "")
	for _, want := range []string{`fanfare_mailbox_deliveries_total{listener="lmtp"} 1`, `fanfare_mailbox_deliveries_total{listener="submissions"} 1`, `fanfare_mailbox_refused_total{listener="submission",reason="login"} 0`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}

	s.must(404, "DELETE", path+"/7", "", "")
	s.must(404, "DELETE", path+"/app-999", "", "")
	s.must(204, "DELETE", path+"/"+made.ID, "", "")
	again := dial(t, at.where["imap"], nil)
	again.until("", "* OK")
	again.until("a LOGIN joe@example.org "+made.Password, "a NO")
	audit := s.must(200, "GET", "/v1/audit?kind=app-password", "", "")
	if strings.Count(audit, `"kind":"app-password"`) != 2 || !strings.Contains(audit, `"action":"create"`) || !strings.Contains(audit, `"action":"revoke"`) || strings.Contains(audit, "@") || strings.Contains(audit, made.Password) {
		t.Errorf("the audit log is %s", audit)
	}
}
