package imap_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/imap"
	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// testClock stands still at noon.
type testClock struct{}

func (testClock) Now() time.Time { return noon }

// noon is a Saturday.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// world is a server on a database of its own.
type world struct {
	t        testing.TB
	store    *mailbox.Store
	clock    testClock
	addr     string
	logins   imap.Login
	password string // of both accounts
}

// logins are the real logins.
type logins struct{ *apppassword.Checker }

func (l logins) Scram(ctx context.Context, from netip.Addr) imap.Exchange { return l.SCRAM(ctx, from) }

// place returns the database of a test.
func place(t testing.TB) string {
	if url := pgtest.Chosen(t); url != "" {
		return url
	}
	return t.TempDir()
}

func newWorld(t testing.TB, change func(*imap.Options)) *world {
	t.Helper()
	w := newWorldWith(t, mailbox.Options{SearchTexts: search.Texts}, change)
	indexing, stop := context.WithCancel(context.Background())
	indexed := make(chan struct{})
	go func() { defer close(indexed); w.store.IndexSearches(indexing) }()
	t.Cleanup(func() { stop(); <-indexed })
	return w
}

func newWorldWith(t testing.TB, mailboxes mailbox.Options, change func(*imap.Options)) *world {
	t.Helper()
	w := &world{t: t, password: apppassword.Generate()}
	logger := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	mailboxes.Clock, mailboxes.Logger = w.clock, logger
	w.store = mailbox.New(storetest.OpenAt(t, place(t)), mailboxes)
	t.Cleanup(w.store.Close)
	w.logins = logins{apppassword.NewChecker(w.store, w.clock, logger)}
	o := imap.Options{Name: "mail.example.org", Store: w.store, Login: w.logins, Clock: w.clock, Logger: logger, TrustsNetwork: netip.Addr.IsLoopback}
	if change != nil {
		change(&o)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.addr = l.Addr().String()
	server := imap.New(o)
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		server.Close(ctx)
		<-served
	})
	for n := 1; n <= 2; n++ {
		a, err := w.store.Create(t.Context(), mailbox.Owner{ID: mailbox.AccountID(n), Service: "press", Address: address(n)})
		must(t, err)
		v, err := apppassword.Verifier(a.Address, w.password, nil)
		must(t, err)
		must(t, w.store.AddCredential(t.Context(), a.ID, &mailbox.Credential{Name: "test", Verifier: v}))
	}
	return w
}

func address(n int) string { return fmt.Sprintf("person%d@example.org", n) }

// testLog fails the test for each logged error.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Errorf("logged: %s", p)
	return len(p), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is a connection that sends and receives raw lines.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	tags int
}

const patience = 20 * time.Second

// dial connects and reads the greeting.
func (w *world) dial() *client {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	must(w.t, err)
	w.t.Cleanup(func() { conn.Close() })
	c := &client{t: w.t, conn: conn, in: bufio.NewReader(conn)}
	if greeting := c.line(); !strings.HasPrefix(greeting, "* OK [CAPABILITY ") {
		w.t.Fatalf("greeting %q", greeting)
	}
	return c
}

// login connects and logs in.
func (w *world) login(n int) *client {
	w.t.Helper()
	c := w.dial()
	c.ok("LOGIN %s %q", address(n), w.password)
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	_ = c.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a response with its literals, without the CR LF at its end.
func (c *client) next() (string, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	return c.nextNow()
}

// nextNow is next with the current deadline.
func (c *client) nextNow() (string, error) {
	var all strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return all.String() + line, err
		}
		all.WriteString(line)
		text := strings.TrimSuffix(line, "\r\n")
		open := strings.LastIndexByte(text, '{')
		if open < 0 || !strings.HasSuffix(text, "}") {
			return strings.TrimSuffix(all.String(), "\r\n"), nil
		}
		n, notNumber := strconv.Atoi(text[open+1 : len(text)-1])
		if notNumber != nil {
			return strings.TrimSuffix(all.String(), "\r\n"), err
		}
		literal := make([]byte, n)
		if _, err := io.ReadFull(c.in, literal); err != nil {
			return all.String(), err
		}
		all.Write(literal)
	}
}

func (c *client) line() string {
	c.t.Helper()
	line, err := c.next()
	if err != nil {
		c.t.Fatalf("%v after %q", err, line)
	}
	return line
}

// command sends a command, and returns the untagged responses and the tagged one without its tag.
func (c *client) command(format string, args ...any) (untagged []string, answer string) {
	c.t.Helper()
	c.tags++
	tag := "t" + strconv.Itoa(c.tags)
	c.send(tag + " " + expand(fmt.Sprintf(format, args...)) + "\r\n")
	for {
		line := c.line()
		if rest, is := strings.CutPrefix(line, tag+" "); is {
			return untagged, rest
		}
		untagged = append(untagged, line)
	}
}

// ok is command for a command that succeeds.
func (c *client) ok(format string, args ...any) (untagged []string, answer string) {
	c.t.Helper()
	untagged, answer = c.command(format, args...)
	if !strings.HasPrefix(answer, "OK") {
		c.t.Fatalf("%s: %s", fmt.Sprintf(format, args...), answer)
	}
	return untagged, answer
}

// expand replaces {=text} by a literal that does not wait. In the text, \r\n stands for a line end.
func expand(command string) string {
	for {
		before, rest, found := strings.Cut(command, "{=")
		if !found {
			return command
		}
		text, after, _ := strings.Cut(rest, "=}")
		text = strings.ReplaceAll(text, `\r\n`, "\r\n")
		command = before + "{" + strconv.Itoa(len(text)) + "+}\r\n" + text + after
	}
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}
