package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"fanfare.dev/fanfare/internal/config"
	ours "fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/sink"
)

// zone makes key files and answers DNS queries with their records.
type zone struct {
	dir     string
	records map[string]string
	secrets []string // lines of the files
}

// key makes a key for example.org and returns its entry in the settings of a channel.
func (z *zone) key(t *testing.T, selector, algorithm string) string {
	t.Helper()
	private, err := ours.Generate(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if z.dir == "" {
		z.dir, z.records = t.TempDir(), map[string]string{}
	}
	file := filepath.Join(z.dir, selector+".pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	z.secrets = append(z.secrets, strings.Split(string(text), "\n")[1])
	key := &ours.Key{Domain: "example.org", Selector: selector, Private: private}
	z.records[key.Name()] = private.Record()
	return fmt.Sprintf("domain: example.org, selector: %s, key_file: %s", selector, file)
}

// signers returns the selectors of the signatures of an email, and checks the signatures.
func (z *zone) signers(t *testing.T, mail []byte) (selectors []string) {
	t.Helper()
	var mu sync.Mutex // signatures are verified concurrently
	all, err := dkim.VerifyWithOptions(bytes.NewReader(mail), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		record, ok := z.records[name]
		if !ok {
			return nil, errors.New("no such name")
		}
		mu.Lock()
		defer mu.Unlock()
		selectors = append(selectors, strings.TrimSuffix(name, "._domainkey.example.org"))
		return []string{record}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Err != nil || time.Since(v.Time).Abs() > time.Hour {
			t.Errorf("%+v\n%s", v, mail)
		}
	}
	slices.Sort(selectors)
	return selectors
}

func (s *testServer) signs(keys ...string) string {
	return fmt.Sprintf("service: news\nchannels:\n  email: {driver: smtp, relay: %q, from: News <news@example.org>, rate: unlimited, multicast: 10, dkim: [{%s}]}\n"+
		"topics:\n  personal: {template: personal}\n  news: {template: news}\ntemplates:\n"+
		"  personal: {subject: For you, text: \"Hello {{ subscriber.address }}\", html: \"<p>Hello  {{ subscriber.address }}</p>\"}\n  news: {subject: News, text: News}\n",
		s.addr, strings.Join(keys, "}, {"))
}

// newest publishes an event and returns the email that arrived.
func (s *testServer) newest(topic string) []byte {
	s.t.Helper()
	before := s.sink.Stats().Messages
	s.must(202, "POST", "/v1/topics/"+topic+"/events", "application/json", `{}`)
	s.eventually("a mail", func() bool { return s.sink.Stats().Messages > before && len(s.sink.Messages()) > int(before) })
	return s.sink.Messages()[before].Body
}

func TestMailIsSignedByTheKeyInForce(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	first, rsa, next := z.key(t, "first", ours.Ed25519), z.key(t, "rsa", ours.RSA), z.key(t, "next", ours.Ed25519)
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(first, rsa))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"personal","channel":"email","to":"a@example.net"}`)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"news","channel":"email","to":"b@example.net"}`)
	signed := func(what, want string) {
		t.Helper()
		for _, topic := range []string{"personal", "news"} {
			if got := strings.Join(z.signers(t, s.newest(topic)), " "); got != want {
				t.Errorf("%s: %s is signed by %q, want %q", what, topic, got, want)
			}
		}
	}
	signed("both", "first rsa")
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(first, rsa, next+", from: 2999-01-01"))
	signed("the next one later", "first rsa")
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(first, rsa, next+", from: 2026-01-01"))
	signed("the next one now", "next rsa")
	if metrics := s.must(200, "GET", "/metrics", "", ""); !strings.Contains(metrics, `fanfare_dkim_signatures_total{channel="email",domain="example.org",selector="next",service="news"} 2`) {
		t.Error("the signatures are not counted")
	}
	for _, path := range []string{"/v1/channels", "/v1/channels/email", "/v1/status", "/metrics", "/v1/audit"} {
		answer := s.must(200, "GET", path, "", "")
		for _, secret := range z.secrets {
			if strings.Contains(answer, secret) {
				t.Errorf("%s shows a key", path)
			}
		}
	}
}

func TestChangedKeyFileIsReadWithoutRestart(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(z.key(t, "first", ours.Ed25519)))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"personal","channel":"email","to":"a@example.net"}`)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"news","channel":"email","to":"b@example.net"}`)
	made := func(n int) bool {
		return strings.Contains(s.must(200, "GET", "/metrics", "", ""), fmt.Sprintf(`fanfare_dkim_signatures_total{channel="email",domain="example.org",selector="first",service="news"} %d`+"\n", n))
	}
	for range 2 {
		for _, topic := range []string{"personal", "news"} { // the signed content of the second is shared
			if got := z.signers(t, s.newest(topic)); len(got) != 1 {
				t.Errorf("%s is signed by %q", topic, got)
			}
		}
		if !made(2) {
			t.Error("the signatures are not counted")
		}
		z.key(t, "first", ours.RSA)
		s.eventually("the count to restart", func() bool { return made(0) })
	}
}

func TestUnusableKeyIsRefused(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	good := z.key(t, "good", ours.Ed25519)
	wrong := filepath.Join(z.dir, "wrong.pem")
	if err := os.WriteFile(wrong, []byte("a secret without a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"domain: example.org, selector: s, key_file: /nowhere/key.pem", "domain: example.org, selector: s, key_file: " + wrong, "domain: example.org, selector: s, key_env: NO_SUCH_VARIABLE"} {
		code, answer := s.call("POST", "/v1/apply", "application/yaml", s.signs(good, key))
		if code != 400 && code != 422 || !strings.Contains(answer, "/channels/email/dkim/1") || strings.Contains(answer, "a secret") {
			t.Errorf("%s: %d %s", key, code, answer)
		}
		s.must(404, "GET", "/v1/channels/email", "", "")
	}
	// A staging server needs no keys.
	s.restartWith(func(c *config.Config) { c.Capture = "smtp://" + s.addr })
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs("domain: example.org, selector: s, key_file: /nowhere/key.pem"))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"personal","channel":"email","to":"a@example.net"}`)
	if mail := s.newest("personal"); len(z.signers(t, mail)) != 0 {
		t.Errorf("%s", mail)
	}
}
