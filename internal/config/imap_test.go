package config

import "testing"

func TestMailProgramsConnectToTheFirstHostThatIsSet(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{MailHost: "Mail.example.org", InboundName: "mx.example.org", PublicURL: "https://news.example.org"}, "mail.example.org"},
		{Config{InboundName: "mx.example.org", InboundDomains: []string{"bounces.example.org"}, PublicURL: "https://news.example.org"}, "mx.example.org"},
		{Config{InboundDomains: []string{"bounces.example.org"}, PublicURL: "https://news.example.org"}, "bounces.example.org"},
		{Config{PublicURL: "https://News.example.org:8443/x"}, "news.example.org"},
		{Config{PublicURL: "http://[::1]:8085"}, ""},
		{Config{}, ""},
	} {
		if got := c.config.PublicMailHost(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.config, got, c.want)
		}
	}
}
