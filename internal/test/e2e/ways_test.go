package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// A channel of driver file leaves one file for each mail, in the form that a
// mail program opens.
func TestFileChannelWritesMails(t *testing.T) {
	t.Parallel()
	s := serve(t)
	folder := filepath.Join(t.TempDir(), "out")
	s.http.must(200, "POST", "/v1/apply", yaml, `service: news
channels: {email: {driver: file, path: `+folder+`, from: "News <news@example.org>"}}
topics: {story: {template: story}}
templates: {story: {subject: "{{ event.title }}", text: "Hello {{ subscriber.address }}"}}
`)
	people := crowd(5)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"on paper"}`)
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 5 {
		t.Fatalf("got %v", b.Counts)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files: %v %v", len(files), files, err)
	}
	to := map[string]bool{}
	for _, file := range files {
		mail, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body := headerOf(string(mail))
		to[field(string(mail), "To")] = true
		if filepath.Ext(file) != ".eml" || field(string(mail), "Subject") != "on paper" || !strings.Contains(body, "Hello "+strings.Trim(field(string(mail), "To"), "<>")) {
			t.Errorf("%s: %s", file, mail)
		}
	}
	if len(to) != 5 {
		t.Errorf("written to %v", to)
	}
}

// Mail goes encrypted to a relay that offers it, and to no other where it must be.
func TestMailGoesByTLSWhereItMust(t *testing.T) {
	t.Parallel()
	offered, _, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: offered.Certificates[0].Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	encrypted, open := newRelay(t, sink.Config{TLS: offered}), newRelay(t, sink.Config{})
	s := prepare(t)
	s.env = []string{"SSL_CERT_FILE=" + trusted}
	s.start()
	document := `service: news
channels:
  email: {driver: smtp, relay: %q, tls: %s, from: "news@example.org", rate: unlimited, retry: [1s]}
topics: {story: {template: story}}
templates: {story: {subject: "{{ event.title }}", text: "x"}}
`
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(document, encrypted.addr, "required"))
	s.subscribe("a@example.org")
	s.http.completed(s.http.publish(`{"title":"required"}`))
	encrypted.one("a@example.org")

	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(document, open.addr, "required"))
	event := s.http.publish(`{"title":"not in the clear"}`)
	eventually(t, "the status tells why nothing leaves", func() bool {
		status := into[fanfareStatus](t, s.http.must(200, "GET", "/v1/status", "", ""))
		return len(status.Channels) == 1 && strings.Contains(status.Channels[0].LastError, "STARTTLS")
	})
	if open.total() != 0 {
		t.Error("a mail that must be encrypted went in the clear")
	}
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(document, open.addr, "opportunistic"))
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("got %v", b.Counts)
	}
	if open.total() != 1 {
		t.Errorf("%d mails where TLS is not required", open.total())
	}
}

// The API speaks HTTPS with a certificate, and nothing else then.
func TestAPIOverTLS(t *testing.T) {
	t.Parallel()
	settings, roots, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, cert, "CERTIFICATE", settings.Certificates[0].Certificate[0])
	secret, err := x509.MarshalPKCS8PrivateKey(settings.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, key, "PRIV"+"ATE KEY", secret)
	s := serve(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it listens on %s", s.url)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	s.http.http = &http.Client{Transport: transport, Timeout: patience}
	s.http.must(200, "GET", "/readyz", "", "")
	s.http.must(200, "GET", "/v1/status", "", "")
	ran := run(t, []string{"FANFARE_SERVER=" + s.url, "FANFARE_KEY=" + s.key, "SSL_CERT_FILE=" + cert}, "", "status", "--json")
	if ran.code != 0 {
		t.Errorf("the command line ended with %d: %s", ran.code, ran.err)
	}
	if ran := s.run("", "status"); ran.code != 3 || !strings.Contains(ran.err, "certificate") {
		t.Errorf("an unknown certificate was taken: %d %s", ran.code, ran.err)
	}
	inClear := *s.http
	inClear.url = strings.Replace(s.url, "https:", "http:", 1)
	inClear.http = plainHTTP
	if status, text, _ := inClear.send("GET", "/v1/status", "", ""); status != http.StatusBadRequest || strings.Contains(text, "durability") {
		t.Errorf("in the clear it answered %d: %s", status, text)
	}
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
