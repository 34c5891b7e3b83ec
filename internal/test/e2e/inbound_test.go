package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// A mailer is a raw connection to the inbound server of the program.
type mailer struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// mailed is a server with the document applied that takes mail for
// bounces.example.org, and its relay.
func mailed(t *testing.T) (*server, *relay) {
	t.Helper()
	return newsroom(t, sink.Config{KeepFirst: 10}, "rate: unlimited, returns: bounces.example.org", "--inbound", "127.0.0.1:0", "--inbound-domains", "bounces.example.org")
}

// inbound is what the status says of mail that came in.
func (s *server) inbound() (in struct {
	Listen                                                    string
	Open, Taken, Bounces, Unsubscribes, Kept, NotNow, Refused int64
}) {
	s.t.Helper()
	var status struct{ Inbound json.RawMessage }
	if err := json.Unmarshal([]byte(s.http.with(s.key).must(200, "GET", "/v1/status", "", "")), &status); err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(status.Inbound, &in); err != nil {
		s.t.Fatalf("%s: %v", status.Inbound, err)
	}
	return in
}

// mailer has connected, and said its name.
func (s *server) mailer(at string) *mailer {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	m := &mailer{s.t, conn, bufio.NewReader(conn)}
	m.expect("", "220 bounces.example.org ESMTP")
	m.expect("EHLO peer.example.com\r\n", "250")
	return m
}

// expect sends bytes and wants an answer that begins so; "" is the end.
func (m *mailer) expect(raw, want string) {
	m.t.Helper()
	if _, err := m.Write([]byte(raw)); err != nil {
		m.t.Fatal(err)
	}
	for {
		line, err := m.in.ReadString('\n')
		if err != nil && want == "" && line == "" {
			return
		}
		if err != nil || want == "" || !strings.HasPrefix(line, want) {
			m.t.Fatalf("%q was answered %q (%v), want %q", raw, line, err, want)
		}
		if line[3] == ' ' {
			return
		}
	}
}

// mail sends a message whose lines have CR LF.
func (m *mailer) mail(from, to, text, want string) {
	m.t.Helper()
	m.expect("MAIL FROM:<"+from+">\r\n", "250")
	m.expect("RCPT TO:<"+to+">\r\n", "250")
	m.expect("DATA\r\n", "354")
	m.expect(text+"\r\n.\r\n", want)
}

var leaveAddress = regexp.MustCompile(`List-Unsubscribe: <https://news\.example\.org/u/[^>]+>,\r\n <mailto:(u-[a-z2-7]{48}@bounces\.example\.org)\?subject=unsubscribe>\r\nList-Unsubscribe-Post: `)

// Every mail has a return address of its own and one to unsubscribe; a mail to the
// latter ends the subscription, and an automatic answer does not.
func TestAMailToUnsubscribeEndsWhatTheMessageWasAbout(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	s.subscribe("ann@example.org", "bob@example.org")
	s.http.completed(s.http.publish(`{"title":"first"}`))
	senders, leave := map[string]string{}, map[string]string{}
	for _, m := range r.sink.Messages() {
		to := m.To[0]
		senders[to] = m.From
		if !regexp.MustCompile(`^b-[a-z2-7]{48}@bounces\.example\.org$`).MatchString(m.From) {
			t.Errorf("the sender is %q", m.From)
		}
		found := leaveAddress.FindStringSubmatch(string(m.Body))
		if found == nil {
			t.Fatalf("no address to unsubscribe in\n%s", m.Body)
		}
		leave[to] = found[1]
	}
	if len(leave) != 2 || senders["ann@example.org"] == senders["bob@example.org"] || leave["ann@example.org"] == leave["bob@example.org"] {
		t.Fatalf("%v\n%v", senders, leave)
	}
	m := s.mailer(s.inbound().Listen)
	m.mail("", leave["bob@example.org"], "Subject: undelivered\r\n\r\nx", "250")
	m.mail("bob@example.org", strings.ToUpper(leave["bob@example.org"]), "Subject: away\r\nAuto-Submitted: auto-replied\r\n\r\nx", "250")
	m.mail("someone@example.com", leave["ann@example.org"], "Subject: unsubscribe\r\n\r\n", "250")
	m.mail("someone@example.com", leave["ann@example.org"], "Subject: unsubscribe\r\n\r\n", "250") // again
	b := s.http.completed(s.http.publish(`{"title":"second"}`))
	if b.Counts[fanfare.Accepted] != 1 || len(r.of("ann@example.org")) != 1 || len(r.of("bob@example.org")) != 2 {
		t.Errorf("got %v", b.Counts)
	}
	if in := s.inbound(); in.Unsubscribes != 2 || in.Taken != 4 {
		t.Errorf("%+v", in)
	}
}

// The inbound server refuses mail for other domains in every form of the address.
func TestTheInboundServerIsNoRelay(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	s.subscribe("ann@example.org")
	s.http.completed(s.http.publish(`{"title":"first"}`))
	genuine := r.sink.Messages()[0].From
	token, _, _ := strings.Cut(genuine, "@")
	at := s.inbound().Listen
	foreign := []string{
		"victim@example.com", "victim", "victim@", "@example.com", "", "victim@[127.0.0.1]", "victim@127.0.0.1", "victim@localhost",
		"victim%example.com@bounces.example.org", "victim%example.com@[127.0.0.1]", "victim%example.com", "victim@example.com@bounces.example.org",
		"\"victim@example.com\"@bounces.example.org", "\"victim@example.com\"", "\"victim%example.com\"", "\"victim@example.com\"@[127.0.0.1]",
		"@bounces.example.org:victim@example.com", "@bounces.example.org,@x.example:victim@example.com", "@[127.0.0.1]:victim@example.com",
		"example.com!victim", "example.com!victim@bounces.example.org", "example.com!victim@[127.0.0.1]", "bounces.example.org!example.com!victim",
		"victim@example.com.", "victim@bounces.example.org", "victim@sub.bounces.example.org", "victim@bounces.example.org.", "victim@xbounces.example.org",
		token + "@example.com", token + "@bounces.example.org@example.com", token + "%example.com@bounces.example.org", "@example.com:" + genuine,
		"\"" + token + "\"@bounces.example.org", token + "+x@bounces.example.org", token[:len(token)-1] + "@bounces.example.org",
		"u" + token[1:] + "@bounces.example.org", "postmaster@example.com", "abuse", "\\" + genuine, genuine + "\x00@example.com",
		"|/bin/sh@bounces.example.org", "/etc/passwd@bounces.example.org", "victim;example.com@bounces.example.org",
	}
	for _, to := range foreign {
		m := s.mailer(at)
		for _, from := range []string{"", "a@example.com", "postmaster@bounces.example.org", genuine} {
			m.expect("MAIL FROM:<"+from+">\r\n", "250")
			m.expect("RCPT TO:<"+to+">\r\n", "550 5.1.1")
			m.expect("RSET\r\n", "250")
		}
		m.expect("MAIL FROM:<>\r\n", "250")
		m.expect("RCPT TO:<"+to+">\r\n", "550 5.1.1")
		m.expect("DATA\r\n", "503 5.5.1")
		m.expect("QUIT\r\n", "221")
	}
	if in := s.inbound(); in.Taken != 0 || in.Refused < int64(len(foreign)) {
		t.Errorf("%+v", in)
	}
	if r.total() != 1 {
		t.Errorf("%d mails left", r.total())
	}
}

// None of the ends of a message that servers have taken for one in place of CR LF .
// CR LF ends it: the second message, which such a server would see, is not taken.
func TestNothingIsSmuggledBehindAMessage(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	s.subscribe("ann@example.org")
	s.http.completed(s.http.publish(`{"title":"first"}`))
	mail := r.sink.Messages()[0]
	leave := leaveAddress.FindStringSubmatch(string(mail.Body))[1]
	at := s.inbound().Listen
	smuggled := "MAIL FROM:<evil@example.com>\r\nRCPT TO:<" + leave + ">\r\nDATA\r\nSubject: unsubscribe\r\n\r\n"
	ends := []string{
		"\n.\n", "\r.\r", "\n.\r\n", "\r\n.\n", "\r.\r\n", "\r\n.\r", "\n.\r", "\r.\n", "\n\n.\r\n", "\r\r\n.\r\r\n", "\r\n.\r\r\n", "\r\n\n.\n",
		"\r\n\r.\r\n", "\r\n.\n\r\n", "\n\r.\n\r", "\r\n\x00.\n", "\x00\n.\r\n", "\n.\r\n.\r\n",
	}
	for _, end := range ends {
		m := s.mailer(at)
		m.expect("MAIL FROM:<>\r\n", "250")
		m.expect("RCPT TO:<"+leave+">\r\n", "250")
		m.expect("DATA\r\n", "354")
		m.expect("Subject: x\r\n\r\nx"+end+smuggled+"\r\n.\r\n", "521 5.5.2")
		m.expect("", "")
	}
	// These lines look like the end of a message but belong to its text.
	for _, text := range []string{"\r\n..\r\n", "\r\n.\x00\r\n", "\r\n. \r\n", "\r\n.\t\r\n", "\r\n\x00.\r\n", "\r\n.x\r\n"} {
		m := s.mailer(at)
		m.mail("", leave, "Subject: x\r\n\r\nx"+text+smuggled, "250")
		m.expect("QUIT\r\n", "221")
		m.expect("", "")
	}
	for _, broken := range []string{"NOOP\n", "NOOP\rNOOP\r\n", "NOOP\r\r\n", "\rNOOP\r\n", "MAIL FROM:<>\nRCPT TO:<" + leave + ">\n"} {
		m := s.mailer(at)
		m.expect(broken, "521 5.5.2")
		m.expect("", "")
	}
	for _, ahead := range []string{
		"EHLO a\r\nMAIL FROM:<>\r\n", "HELO a\r\nNOOP\r\n",
		"MAIL FROM:<>\r\nRCPT TO:<" + leave + ">\r\nDATA\r\nSubject: x\r\n\r\n.\r\n",
	} {
		m := s.mailer(at)
		if _, err := m.Write([]byte(ahead)); err != nil {
			t.Fatal(err)
		}
		answers := ""
		for {
			line, err := m.in.ReadString('\n')
			if err != nil {
				break
			}
			answers = line
		}
		if !strings.HasPrefix(answers, "554 5.5.0") {
			t.Errorf("%q ended with %q", ahead, answers)
		}
	}
	if in := s.inbound(); in.Unsubscribes != 0 {
		t.Errorf("%+v", in)
	}
	b := s.http.completed(s.http.publish(`{"title":"second"}`))
	if b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("somebody was unsubscribed: %v", b.Counts)
	}
}

func TestAMailToThePostmasterIsAFile(t *testing.T) {
	t.Parallel()
	s, _ := mailed(t)
	s.mailer(s.inbound().Listen).mail("ann@example.com", "postmaster", "Subject: hello\r\n\r\nHow are you?", "250")
	files, err := filepath.Glob(filepath.Join(s.dir, "postmaster", "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.HasPrefix(string(text), "Return-Path: <ann@example.com>\r\nReceived: from peer.example.com") || !strings.HasSuffix(string(text), "\r\nHow are you?\r\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
