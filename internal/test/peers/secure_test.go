//go:build peers

package peers

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// encrypts holds a driver against a listener that offers STARTTLS with a
// certificate that only trust knows, and against one that does not offer it.
func encrypts(t *testing.T, p *peer, address, plain string, trust *tls.Config, m manner) {
	t.Helper()
	stranger := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	for name, cfg := range map[string]smtp.Config{
		"required, and the certificate is known":          {TLS: smtp.TLSRequired, TLSConfig: trust},
		"opportunistic, whatever the certificate is":      {TLS: smtp.TLSOpportunistic, TLSConfig: stranger},
		"opportunistic in lock step":                      {TLS: smtp.TLSOpportunistic, Grouping: "lockstep"},
		"opportunistic, with refusals among other things": {TLS: smtp.TLSOpportunistic, TLSConfig: trust},
	} {
		t.Run("STARTTLS: "+name, func(t *testing.T) {
			cfg.Address = address
			client := smtp.New(cfg)
			kinds := []string{good, good, hard, good, soft, good, hardSender}
			messages := crowd(42, func(i int) string {
				if strings.Contains(name, "refusals") {
					return kinds[i%len(kinds)]
				}
				return good
			})
			s := send(t, client, 2, messages...)
			m.judged(t, s)
			mails := p.delivered()
			arrivedOnce(t, mails, without(messages, isRefused))
			for _, mail := range mails {
				if trace, _, _ := strings.Cut(mail.text, "\nFrom: "); !strings.Contains(trace, "TLS") {
					t.Errorf("%s was not sent through TLS: %s", mail.to, trace)
				}
			}
			want := m.mode
			if cfg.Grouping != "" {
				want = smtp.LockStep
			}
			if got := client.Status(); got.Mode != want || len(s.broken) > 0 {
				t.Errorf("the driver ended in %+v, connections with %v", got, s.broken)
			}
		})
	}

	for name, cfg := range map[string]smtp.Config{
		"the certificate is not known": {Address: address, TLS: smtp.TLSRequired, TLSConfig: stranger},
		"it is not offered":            {Address: plain, TLS: smtp.TLSRequired, TLSConfig: trust},
	} {
		t.Run("STARTTLS: required, and "+name, func(t *testing.T) {
			d := &queue{t: t, waiting: crowd(1, allGood)}
			if err := smtp.New(cfg).Serve(t.Context(), d); err == nil {
				t.Error("the connection was made")
			}
			if d.left() != 1 {
				t.Error("the message is gone")
			}
			arrivedOnce(t, p.delivered(), nil)
		})
	}
}
