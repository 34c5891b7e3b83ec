//go:build peers

package peers

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
)

// postOffice is a server with the mailboxes of ann, bob and dora, and their app passwords.
type postOffice struct {
	*started
	passwords map[string]string
	cert      string // path of its certificate
}

func startPostOffice(t *testing.T) *postOffice {
	t.Helper()
	cert, key, _ := newPeer(t).certify()
	p := &postOffice{started: start(t, "--lmtp-listen", "127.0.0.1:0", "--submission-listen", "127.0.0.1:0", "--submissions-listen", "127.0.0.1:0", "--imap-listen", "127.0.0.1:0",
		"--submission-tls-cert", cert, "--submission-tls-key", key, "--imap-tls-cert", cert, "--imap-tls-key", key, "--inbound-name", "mx.example.org"), cert: cert, passwords: map[string]string{}}
	c := p.client.ForService("news")
	if _, err := c.Apply(t.Context(), []byte("service: news\n"), false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob", "dora"} {
		if _, err := c.PutSubscriber(t.Context(), client.Subscriber{ID: name, Addresses: []client.Address{{Kind: "mail", Address: name + "@example.org"}}}); err != nil {
			t.Fatal(err)
		}
		made, err := c.CreateAppPassword(t.Context(), name+"@example.org", "test")
		if err != nil {
			t.Fatal(err)
		}
		p.passwords[name] = made.Password
	}
	return p
}

// listens returns the address of a listener from the log.
func (p *postOffice) listens(pattern string) (host, port string) {
	p.t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	found := regexp.MustCompile(pattern + `.* listen=(\S+)`).FindSubmatch(log)
	if found == nil {
		p.t.Fatalf("no %s in\n%s", pattern, log)
	}
	if host, port, err = net.SplitHostPort(string(found[1])); err != nil {
		p.t.Fatal(err)
	}
	return host, port
}

// inbox returns how many messages the inbox of a person has, over IMAP.
func (p *postOffice) inbox(name string) string {
	p.t.Helper()
	host, port := p.listens("over IMAP")
	conn, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", net.JoinHostPort(host, port))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "a LOGIN %s@example.org %s\r\nb STATUS INBOX (MESSAGES)\r\nc LOGOUT\r\n", name, p.passwords[name]); err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if count, ok := strings.CutPrefix(lines.Text(), "* STATUS INBOX (MESSAGES "); ok {
			return strings.TrimSuffix(count, ")")
		}
	}
	p.t.Fatalf("the inbox of %s has no status: %v", name, lines.Err())
	return ""
}

// swaks delivers to mailboxes over LMTP, and sends from them with and without the right login.
func TestSwaksAtTheMailboxes(t *testing.T) {
	t.Parallel()
	swaks := program(t, "swaks")
	p := startPostOffice(t)
	ann := []string{"--auth", "PLAIN", "--auth-user", "ann@example.org", "--auth-password", p.passwords["ann"], "--from", "ann@example.org"}
	for _, test := range []struct {
		name, listener string
		args           []string
		want           string // in what it shows
	}{
		{"delivery", "lmtp", []string{"--protocol", "LMTP", "--from", "news@example.com", "--to", "ann@example.org"}, "<-  250 2.6.0"},
		{"pipelined delivery to two", "lmtp", []string{"--protocol", "LMTP", "--pipeline", "--from", "<>", "--to", "ann@example.org,bob@example.org"}, "<-  250 2.6.0"},
		{"a stranger", "lmtp", []string{"--protocol", "LMTP", "--from", "<>", "--to", "carl@example.org"}, "<** 550 5.1.1"},
		{"SMTP at the LMTP server", "lmtp", []string{"--from", "<>", "--to", "ann@example.org"}, "<** 500 5.5.1"},
		{"no login", "submission", []string{"--tls", "--from", "ann@example.org", "--to", "bob@example.org"}, "<~* 530 5.7.0"},
		{"a login without TLS", "submission", append([]string{"--to", "bob@example.org"}, ann...), "Host did not advertise authentication"},
		{"a wrong app password", "submission", []string{"--tls", "--auth", "PLAIN", "--auth-user", "ann@example.org", "--auth-password", p.passwords["bob"], "--from", "ann@example.org", "--to", "bob@example.org"}, "<~* 535 5.7.8"},
		{"STARTTLS", "submission", append([]string{"--tls", "--to", "bob@example.org"}, ann...), "<~  250 2.6.0"},
		{"implicit TLS", "submissions", append([]string{"--tls-on-connect", "--to", "bob@example.org"}, ann...), "<~  250 2.6.0"},
		{"relay", "submissions", append([]string{"--tls-on-connect", "--to", "victim@example.com"}, ann...), "<~* 550 5.7.1"},
		{"the sender of another", "submissions", append([]string{"--tls-on-connect", "--to", "bob@example.org"}, append(ann, "--from", "bob@example.org")...), "<~* 550 5.7.1"},
		{"the From of another", "submissions", append([]string{"--tls-on-connect", "--to", "bob@example.org", "--h-From", "bob@example.org"}, ann...), "<~* 550 5.7.1"},
	} {
		host, port := p.listens("listener=" + test.listener + `\b`)
		args := append([]string{"--server", host, "--port", port, "--helo", "peer.example.com", "--timeout", "120"}, test.args...)
		out, _ := exec.CommandContext(t.Context(), swaks, args...).CombinedOutput() // it ends with a code where it was refused
		if !strings.Contains(string(out), test.want) {
			t.Errorf("%s: no %q in\n%s", test.name, test.want, out)
		}
	}
	if a, b := p.inbox("ann"), p.inbox("bob"); a != "2" || b != "3" {
		t.Errorf("ann has %s messages and bob %s, want 2 and 3", a, b)
	}
}

// Postfix delivers to mailboxes, and returns the mail for those that do not exist.
func TestPostfixDeliversToMailboxes(t *testing.T) {
	t.Parallel()
	swaks := program(t, "swaks")
	p := startPostOffice(t)
	host, port := p.listens(`listener=lmtp\b`)
	relay := startPostfix(t, "virtual_transport = lmtp:inet:"+host+":"+port+"\nmaximal_queue_lifetime = 0\n")
	relayHost, relayPort, err := net.SplitHostPort(relay.address["relay"])
	if err != nil {
		t.Fatal(err)
	}
	const count = 5
	for range count {
		out, err := exec.CommandContext(t.Context(), swaks, "--server", relayHost, "--port", relayPort, "--from", "news@example.org", "--to", "ann@example.org,bob@example.org,carl@example.org").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	p.eventually("the mail is in the mailboxes", func() bool { return p.inbox("ann") == fmt.Sprint(count) && p.inbox("bob") == fmt.Sprint(count) })
	p.eventually("Postfix knows that carl has none", func() bool {
		log, err := os.ReadFile(relay.log)
		return err == nil && strings.Count(string(log), "to=<carl@example.org>") >= count && strings.Contains(string(log), "550 5.1.1")
	})
}
