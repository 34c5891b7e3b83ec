package smtp

import (
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestProbeDescribesTheSessionAndSendsNothing(t *testing.T) {
	security, roots, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	r, address := startRelay(t, security, false)
	config := Config{Address: address, TLS: TLSOpportunistic}
	s, err := New(config).Probe(t.Context())
	if err != nil || !strings.Contains(s.Banner, "relay.test") || s.TLS != "TLS 1.3" || s.Untrusted == nil || s.Authenticated || !slices.Contains(s.Extensions, "PIPELINING") {
		t.Errorf("%+v, %v", s, err)
	}
	config.TLSConfig = security.Clone()
	config.TLSConfig.RootCAs = roots
	config.Username, config.Password = "ada", "open sesame"
	if s, err := New(config).Probe(t.Context()); err != nil || s.Untrusted != nil || !s.Authenticated || r.user != "ada" {
		t.Errorf("logged in: %+v, %v", s, err)
	}
	config.Password = "wrong"
	if _, err := New(config).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "AUTH PLAIN") {
		t.Errorf("with a wrong password: %v", err)
	}
	if len(r.mail) != 0 {
		t.Errorf("it sent %v", r.mail)
	}
}
