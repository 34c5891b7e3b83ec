//go:build peers

package peers

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
)

// returning is the document of a server whose mails say where what comes back goes.
const returning = `service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.com>", returns: bounces.example.org, connections: 2, rate: unlimited, retry: [1s]}
topics:
  story:
    template: story
templates:
  story:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}, this is {{ event.title }}.\n"
`

// startReturning starts the program with its inbound server, which offers TLS, and
// tells where that listens.
func startReturning(t *testing.T) (s *started, inbound string) {
	t.Helper()
	keys := newPeer(t)
	cert, key, _ := keys.certify()
	s = start(t, "--inbound", "127.0.0.1:0", "--inbound-domains", "bounces.example.org", "--inbound-tls-cert", cert, "--inbound-tls-key", key)
	status, err := s.client.Status(t.Context())
	if err != nil || status.Inbound == nil {
		t.Fatalf("%+v, %v", status, err)
	}
	return s, status.Inbound.Listen
}

// publish applies the document with a relay, subscribes people and publishes; it
// returns the event when all has left.
func (s *started) publish(relay string, people ...string) (event string) {
	s.t.Helper()
	c := s.client.ForService("news")
	if _, err := c.Apply(s.t.Context(), fmt.Appendf(nil, returning, relay), false); err != nil {
		s.t.Fatal(err)
	}
	var lines strings.Builder
	for _, p := range people {
		fmt.Fprintf(&lines, `{"topic":"story","channel":"email","to":%q}`+"\n", p)
	}
	if sum, err := c.ImportSubscriptions(s.t.Context(), strings.NewReader(lines.String()), nil); err != nil || sum.Created != int64(len(people)) {
		s.t.Fatalf("%+v, %v", sum, err)
	}
	posted, err := c.Publish(s.t.Context(), "story", map[string]any{"title": "x"}, client.PublishOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("all is settled", func() bool {
		b, err := c.Event(s.t.Context(), posted.ID)
		return err == nil && !b.Stages.Completed.IsZero()
	})
	return posted.ID
}

// swaks drives the inbound server through its edges, with and without TLS.
func TestSwaksAtTheInboundServer(t *testing.T) {
	t.Parallel()
	swaks := program(t, "swaks")
	s, inbound := startReturning(t)
	relay := startPostfix(t)
	s.publish(relay.address["relay"], "good1@example.org")
	mails := relay.delivered()
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	back := mails[0].from
	leave := regexp.MustCompile(`<mailto:(u-[a-z2-7]{48}@bounces\.example\.org)`).FindStringSubmatch(mails[0].text)
	if leave == nil || !strings.HasPrefix(back, "b-") {
		t.Fatalf("sender %s\n%s", back, mails[0].text)
	}
	host, port, err := net.SplitHostPort(inbound)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want string // in what it shows
	}{
		{"a stranger", []string{"--to", "victim@example.com"}, "<** 550 5.1.1"},
		{"a stranger, by TLS", []string{"--tls", "--to", "victim@example.com"}, "<~* 550 5.1.1"},
		{"the percent hack", []string{"--to", "victim%example.com@bounces.example.org"}, "<** 550 5.1.1"},
		{"an address that was changed", []string{"--to", "x" + back}, "<** 550 5.1.1"},
		{"postmaster, by HELO", []string{"--protocol", "SMTP", "--to", "postmaster@bounces.example.org"}, "<-  250 2.6.0"},
		{"postmaster, grouped", []string{"--pipeline", "--to", "postmaster@bounces.example.org"}, "<-  250 2.6.0"},
		{"postmaster, by TLS", []string{"--tls", "--to", "postmaster@bounces.example.org"}, "<~  250 2.6.0"},
		{"too large", []string{"--to", "postmaster@bounces.example.org", "--body", "@" + s.write("large", strings.Repeat(strings.Repeat("x", 70)+"\n", 20_000))}, "<** 552 5.3.4"},
		{"AUTH", []string{"--auth", "PLAIN", "--auth-user", "a", "--auth-password", "b", "--to", "postmaster@bounces.example.org"}, "Host did not advertise authentication"},
		{"an absence", []string{"--from", "a@example.com", "--to", leave[1], "--add-header", "Auto-Submitted: auto-replied"}, "<-  250 2.6.0"},
		{"the wish to leave", []string{"--tls", "--from", "a@example.com", "--to", strings.ToUpper(leave[1]), "--header", "Subject: unsubscribe"}, "<~  250 2.6.0"},
	} {
		args := append([]string{"--server", host, "--port", port, "--helo", "peer.example.com", "--from", "<>", "--timeout", "120"}, test.args...)
		out, _ := exec.CommandContext(t.Context(), swaks, args...).CombinedOutput() // it ends with a code where it was refused
		if !strings.Contains(string(out), test.want) {
			t.Errorf("%s: no %q in\n%s", test.name, test.want, out)
		}
	}
	status, err := s.client.Status(t.Context())
	if err != nil || status.Inbound.Kept != 3 || status.Inbound.Unsubscribes != 1 {
		t.Errorf("%+v, %v", status.Inbound, err)
	}
}
