package sink

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	stdsmtp "net/smtp"
	"strings"
	"sync"
	"testing"
	"time"
)

func start(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(cfg)
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, addr.String()
}

// A client sends raw commands to the sink.
type client struct {
	t  testing.TB
	nc net.Conn
	in *bufio.Reader
}

func connect(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(4 * time.Minute))
	c := &client{t, nc, bufio.NewReader(nc)}
	c.want("220")
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.nc.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// code reads one reply, or returns "" if the connection is closed.
func (c *client) code() string {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return ""
		}
		if len(line) > 3 && line[3] == ' ' {
			return line[:3]
		}
	}
}

func (c *client) want(codes ...string) {
	c.t.Helper()
	for i, want := range codes {
		if got := c.code(); got != want {
			c.t.Fatalf("reply %d is %q, want %q", i, got, want)
		}
	}
}

func envelope(to string) string {
	return "MAIL FROM:<s@example.com>\r\nRCPT TO:<" + to + ">\r\nDATA\r\n"
}

func message(event string) string {
	return "Subject: x\r\nX-Fanfare-Event: " + event + "\r\nMessage-ID: <1@x>\r\n\r\nbody\r\n.\r\n"
}

func TestDuplicatesAreCountedByEventAndRecipient(t *testing.T) {
	s, addr := start(t, Config{})
	c := connect(t, addr)
	c.send("EHLO x\r\n")
	c.want("250")
	for _, m := range []struct{ to, event string }{{"a@x", "e1"}, {"b@x", "e1"}, {"a@x", "e2"}, {"a@x", "e1"}, {"a@x", "e1"}} {
		c.send(envelope(m.to))
		c.want("250", "250", "354")
		c.send(message(m.event))
		c.want("250")
	}
	got := s.Stats()
	if got.Messages != 5 || got.Accepted != 5 || got.Unique != 3 || got.Duplicates != 2 || got.Connections != 1 {
		t.Errorf("%+v", got)
	}
	if s.Seen("e1", "a@x") != 3 || s.Seen("e2", "a@x") != 1 || s.Seen("e2", "b@x") != 0 {
		t.Error("Seen is wrong")
	}
	if got.FirstAt.IsZero() || got.LastAt.Before(got.FirstAt) || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
}

func TestOneMessageToTwoCountsForBoth(t *testing.T) {
	s, addr := start(t, Config{})
	c := connect(t, addr)
	c.send("HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@x>\r\nrcpt to: b@x\r\nDATA\r\nMessage-ID:\r\n <only@x>\r\n\r\n.\r\n")
	c.want("250", "250", "250", "250", "354", "250")
	if got := s.Stats(); got.Messages != 1 || got.Accepted != 2 || s.Seen("<only@x>", "b@x") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestPipelinedGroupIsAnsweredHoweverItIsSplit(t *testing.T) {
	whole := "EHLO x\r\n" + envelope("a@x") + message("e1") + envelope("b@x") + message("e1") + "NOOP\r\nRSET\r\nQUIT\r\n"
	codes := []string{"250", "250", "250", "354", "250", "250", "250", "354", "250", "250", "250", "221"}
	for _, size := range []int{1, 2, 3, 5, 7, 50, len(whole)} {
		s, addr := start(t, Config{})
		c := connect(t, addr)
		for rest := whole; rest != ""; {
			n := min(size, len(rest))
			c.send(rest[:n])
			rest = rest[n:]
		}
		c.want(codes...)
		if c.code() != "" {
			t.Error("open after QUIT")
		}
		if got := s.Stats(); got.Unique != 2 {
			t.Errorf("cut by %d: %+v", size, got)
		}
	}
}

func TestGoSMTPClientIsAccepted(t *testing.T) {
	security, pool, err := SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s, addr := start(t, Config{TLS: security, KeepFirst: 1, KeepLast: 2})
	for i := range 5 {
		c, err := stdsmtp.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.StartTLS(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		if ok, _ := c.Extension("STARTTLS"); ok {
			t.Error("STARTTLS is offered inside TLS")
		}
		_ = c.Mail("s@example.com")
		_ = c.Rcpt("r@example.com")
		w, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "X-Fanfare-Event: e%d\r\n\r\n.dot\r\n", i)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Quit(); err != nil {
			t.Error(err)
		}
	}
	var kept []string
	for _, m := range s.Messages() {
		kept = append(kept, string(m.Body))
		if m.From != "s@example.com" || len(m.To) != 1 || m.To[0] != "r@example.com" {
			t.Errorf("%+v", m)
		}
	}
	want := []string{"X-Fanfare-Event: e0\r\n\r\n.dot\r\n", "X-Fanfare-Event: e3\r\n\r\n.dot\r\n", "X-Fanfare-Event: e4\r\n\r\n.dot\r\n"}
	if fmt.Sprint(kept) != fmt.Sprint(want) {
		t.Errorf("%q", kept)
	}
}

func TestPlainTextBehindSTARTTLSIsForgotten(t *testing.T) {
	security, _, err := SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s, addr := start(t, Config{TLS: security})
	c := connect(t, addr)
	c.send("EHLO x\r\nSTARTTLS\r\n" + envelope("a@x") + message("e1"))
	c.want("250", "220")
	outer := tls.Client(c.nc, &tls.Config{InsecureSkipVerify: true})
	if err := outer.Handshake(); err == nil {
		fmt.Fprint(outer, "NOOP\r\n")
		in := bufio.NewReader(outer)
		if line, _ := in.ReadString('\n'); !strings.HasPrefix(line, "250") {
			t.Errorf("%q", line)
		}
	}
	if got := s.Stats(); got.Messages != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSinkContinuesAfterALimit(t *testing.T) {
	s, addr := start(t, Config{MaxMessage: 100_000})
	c := connect(t, addr)
	c.send("EHLO x\r\n" + strings.Repeat("x", 3*maxLine) + "\r\nNOOP\r\n")
	c.want("250", "500", "250")
	c.send("MAIL FROM:<a@x> SIZE=100001\r\n" + envelope("a@x") + strings.Repeat("0123456789abcd\r\n", 10_000) + ".\r\n")
	c.want("552", "250", "250", "354", "552")
	c.send(envelope("a@x") + strings.Repeat("0123456789abcd\r\n", 6_000) + ".\r\n")
	c.want("250", "250", "354", "250")
	c.send("MAIL FROM:<a@x>\r\n")
	c.want("250")
	for range maxRecipients {
		c.send("RCPT TO:<r@x>\r\n")
		c.want("250")
	}
	c.send("RCPT TO:<r@x>\r\nRSET\r\n")
	c.want("452", "250")
	if got := s.Stats(); got.Messages != 1 || got.Bytes != 96_000 {
		t.Errorf("%+v", got)
	}
}

func TestCommandsOutOfPlaceAreRefused(t *testing.T) {
	_, addr := start(t, Config{})
	c := connect(t, addr)
	c.send("RCPT TO:<a@x>\r\nDATA\r\nMAIL FROM\r\nMAIL FROM:<a@x\r\nMAIL FROM:<a@x>\r\nMAIL FROM:<b@x>\r\nRCPT TO:<>\r\nDATA\r\n" +
		"X\r\nHELLO there\r\nDATAX\r\nSTARTTLS\r\nVRFY a\r\n\r\n")
	c.want("503", "503", "501", "501", "250", "503", "501", "554", "500", "500", "500", "502", "252", "500")
}

func TestIncompleteMessageIsNotCounted(t *testing.T) {
	s, addr := start(t, Config{})
	c := connect(t, addr)
	c.send(envelope("a@x") + "Subject: x\r\n\r\nhalf\r\n.")
	c.want("250", "250", "354")
	_ = c.nc.Close()
	_ = s.Close()
	if got := s.Stats(); got.Messages != 0 || got.Accepted != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTooManyConnectionsGet421(t *testing.T) {
	_, addr := start(t, Config{MaxConnections: 1})
	connect(t, addr)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if all, _ := io.ReadAll(nc); !bytes.HasPrefix(all, []byte("421 ")) {
		t.Errorf("%q", all)
	}
}

func TestCloseIsIdempotentAndEndsIdleClients(t *testing.T) {
	s, addr := start(t, Config{})
	connect(t, addr)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Listen("127.0.0.1:0"); err == nil {
		t.Error("a closed sink listens")
	}
}

// A lockedBuffer is a record that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTheRecordIsWrittenBeforeTheReply(t *testing.T) {
	var record lockedBuffer
	_, addr := start(t, Config{Record: &record, RecordSync: true})
	c := connect(t, addr)
	for i := range 3 {
		c.send(envelope(fmt.Sprintf("r%d@x", i)) + message("e\t1"))
		c.want("250", "250", "354", "250")
		lines := strings.Split(strings.TrimSpace(record.String()), "\n")
		if len(lines) != i+1 {
			t.Fatalf("%q", lines)
		}
		fields := strings.Split(lines[i], "\t")
		if len(fields) != 4 || fields[1] != "e 1" || fields[2] != fmt.Sprintf("r%d@x", i) || fields[3] != "<1@x>" {
			t.Errorf("%q", fields)
		}
	}
}

func TestRecordIsCompleteAfterClose(t *testing.T) {
	var record lockedBuffer
	s, addr := start(t, Config{Record: &record})
	c := connect(t, addr)
	for range 100 {
		c.send(envelope("r@x") + message("e1"))
		c.want("250", "250", "354", "250")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(record.String(), "\n"); n != 100 {
		t.Errorf("%d lines", n)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestUnrecordedMessageGetsNoReply(t *testing.T) {
	s, addr := start(t, Config{Record: broken{}, RecordSync: true})
	c := connect(t, addr)
	c.send(envelope("r@x"))
	c.want("250", "250", "354")
	c.send(message("e1"))
	if got := c.code(); got != "" {
		t.Errorf("answered %s", got)
	}
	if s.Close() == nil {
		t.Error("Close hides that the record is incomplete")
	}
}

func TestTheCallbackSeesPlainBodies(t *testing.T) {
	var got string
	_, addr := start(t, Config{OnMessage: func(from string, to []string, body []byte) { got = fmt.Sprintf("%s %s %q", from, to, body) }})
	c := connect(t, addr)
	c.send(envelope("r@x") + "..\r\na\r\n..b\r\n.\r\n")
	c.want("250", "250", "354", "250")
	if want := `s@example.com [r@x] ".\r\na\r\n.b\r\n"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
