package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// servesMail waits until the given run of a node accepts mail programs.
func (s *server) servesMail(run int) {
	s.t.Helper()
	eventually(s.t, "the node serves mailboxes", func() bool { return strings.Count(s.logged(), "accepting mail for mailboxes") == run })
}

// logIn logs in over IMAP with a password, and selects the inbox.
func (s *server) logIn(address, password string) *reader {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.newestListener("over IMAP"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	r := &reader{t: s.t, Conn: conn, in: bufio.NewReader(conn)}
	r.do(fmt.Sprintf("LOGIN %q %q", address, password))
	r.do("SELECT INBOX")
	return r
}

// idle begins IDLE.
func (r *reader) idle() {
	r.t.Helper()
	if _, err := fmt.Fprint(r, "i IDLE\r\n"); err != nil {
		r.t.Fatal(err)
	}
	r.until("+ idling")
}

// until reads lines until one contains a text.
func (r *reader) until(text string) {
	r.t.Helper()
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			r.t.Fatalf("%q does not come: %v", text, err)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// eventSource reads the changes of a mailbox over HTTP. Each element is the new state of Email.
func (s *server) eventSource(address, password string) <-chan string {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/jmap/eventsource?types=Email&closeafter=no&ping=0", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.SetBasicAuth(address, password)
	response, err := plainHTTP.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("the event stream has status %d", response.StatusCode)
	}
	states := make(chan string, 100)
	go func() {
		defer close(states)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var change struct{ Changed map[string]map[string]string }
			if json.Unmarshal([]byte(data), &change) == nil {
				for _, types := range change.Changed {
					states <- types["Email"]
				}
			}
		}
	}()
	return states
}

// lmtp delivers a message over LMTP and returns the reply.
func (s *server) lmtp(to, subject string) string {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.newestListener(`listener=lmtp\b`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "LHLO sender.example.com\r\n"); err != nil {
		s.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for greeted := false; ; {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			s.t.Fatal(err)
		case strings.HasPrefix(line, "250 ") && !greeted: // the last line of the reply to LHLO
			greeted = true
			if _, err := fmt.Fprintf(conn, "MAIL FROM:<>\r\nRCPT TO:<%s>\r\nDATA\r\n", to); err != nil {
				s.t.Fatal(err)
			}
		case strings.HasPrefix(line, "354"):
			if _, err := fmt.Fprintf(conn, "Subject: %s\r\n\r\nbody\r\n.\r\n", subject); err != nil {
				s.t.Fatal(err)
			}
		case strings.HasPrefix(line, "250 2.6.0"), line[0] >= '4':
			return line
		}
	}
}

// All nodes serve all mailboxes. A session on one node learns of what happens on another, and goes on when a third one dies.
func TestEachNodeServesMailboxes(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair("--imap-listen", "127.0.0.1:0", "--lmtp-listen", "127.0.0.1:0")
	leader.servesMail(1)
	standby.servesMail(1)
	leader.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(inboxes, "rate: unlimited", t.TempDir()))
	const people = 70 // a broadcast to so many is stored in a block
	var b strings.Builder
	for _, who := range crowd(people) {
		fmt.Fprintf(&b, `{"topic":"story","channel":"inbox","to":%q}`+"\n", who)
	}
	leader.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())
	who := crowd(people)[0]
	var made struct{ ID, Password string }
	if err := json.Unmarshal([]byte(standby.http.must(201, "POST", "/v1/mailboxes/"+who+"/app-passwords", "application/json", "{}")), &made); err != nil {
		t.Fatal(err)
	}
	idles, other := standby.logIn(who, made.Password), leader.logIn(who, made.Password)
	stream := standby.eventSource(who, made.Password)

	idles.idle()
	text := "Subject: over the leader\r\n\r\nbody"
	other.do(fmt.Sprintf("APPEND INBOX {%d+}\r\n%s", len(text), text))
	idles.until("* 1 EXISTS")
	first := <-stream
	other.do(`STORE 1 +FLAGS (\Flagged)`)
	idles.until(`FLAGS (\Flagged`)
	if second := <-stream; first == "" || second == "" || second == first {
		t.Errorf("the states are %q and %q", first, second)
	}

	leader.http.completed(standby.http.publish(`{"title":"to all"}`))
	idles.until("* 2 EXISTS")

	other.idle()
	if reply := standby.lmtp(who, "over the standby"); !strings.HasPrefix(reply, "250") {
		t.Fatalf("LMTP at a node that does not lead: %s", reply)
	}
	other.until("* 3 EXISTS")
	idles.until("* 3 EXISTS")

	// Mail is accepted and reported while no node leads.
	leader.kill()
	if reply := standby.lmtp(who, "without a leader"); !strings.HasPrefix(reply, "250") {
		t.Fatalf("LMTP without a leader: %s", reply)
	}
	idles.until("* 4 EXISTS")
	if _, err := io.Copy(io.Discard, other.in); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection to the killed node goes on")
	}
	eventually(t, "the other node leads", func() bool { return strings.Contains(standby.logged(), "this node leads") })
	if reply := standby.lmtp(who, "after the takeover"); !strings.HasPrefix(reply, "250") {
		t.Fatalf("LMTP after a takeover: %s", reply)
	}
	idles.until("* 5 EXISTS")

	// An account that is disabled through one node has no sessions on others.
	leader.launch()
	leader.ready("it forwards")
	leader.servesMail(2)
	other = leader.logIn(who, made.Password)
	other.idle()
	standby.mustRun("", "mailbox", "disable", who)
	other.until("* BYE")
	idles.until("* BYE")
	for range stream { // ends too
	}
}
