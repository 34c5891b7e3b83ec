package inbound

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

const patience = 2 * time.Minute // far beyond what a loaded machine needs

// The addresses of the tests: the first character is the kind, and the number the position.
const (
	bounceTo = "b-000001@bounces.example.org"
	leaveTo  = "u-000001@bounces.example.org"
)

var errForeign = errors.New("foreign")

func verify(local string) (byte, fanfare.DeliveryRef, bool, error) {
	local = strings.ToLower(local)
	if len(local) != 8 || local[1] != '-' || strings.Trim(local[2:], "0123456789") != "" {
		return 0, fanfare.DeliveryRef{}, false, errForeign
	}
	return local[0], fanfare.DeliveryRef{Day: 1, Position: uint32(local[7] - '0')}, local[2] == '9', nil
}

// world is a server and the arrivals that it passed on.
type world struct {
	t testing.TB
	*Server
	mu     sync.Mutex
	taken  []bounce.Arrival
	kept   []string
	refuse error         // of Take
	hold   chan struct{} // Take waits for it
	inTake chan struct{} // told when Take is waiting
}

func (w *world) take(ctx context.Context, a bounce.Arrival) error {
	w.mu.Lock()
	hold, refuse := w.hold, w.refuse
	w.mu.Unlock()
	if hold != nil {
		w.inTake <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse != nil {
		return refuse
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = append(w.taken, a)
	return nil
}

func (w *world) arrivals() []bounce.Arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]bounce.Arrival(nil), w.taken...)
}

func options(w *world) Options {
	return Options{
		Address: "127.0.0.1:0", Name: "mx.example.org", Domains: []string{"bounces.example.org", "Returns.example.net"},
		Verify: verify, Take: w.take,
		Keep: func(m []byte) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept = append(w.kept, string(m))
			return nil
		},
		Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
	}
}

func start(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, inTake: make(chan struct{}, 10)}
	o := options(w)
	for _, c := range change {
		c(&o)
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Server = s
	served := make(chan struct{})
	go func() { defer close(served); s.Serve() }()
	t.Cleanup(func() {
		if err := s.Stop(time.Second); err != nil {
			t.Error(err)
		}
		<-served
	})
	return w
}

// caller is a raw connection to the server.
type caller struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (w *world) call() *caller {
	w.t.Helper()
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return wrap(w.t, conn)
}

func wrap(t testing.TB, conn net.Conn) *caller {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(raw string) {
	c.t.Helper()
	if _, err := c.Write([]byte(raw)); err != nil {
		c.t.Fatalf("sending %q: %v", raw, err)
	}
}

// answer reads a reply of one or more lines; "" is the end of the connection.
func (c *caller) answer() string {
	c.t.Helper()
	var all strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return all.String()
		}
		if !strings.HasSuffix(line, "\r\n") || len(line) < 6 {
			c.t.Fatalf("not an answer: %q", line)
		}
		all.WriteString(line)
		if line[3] == ' ' {
			return all.String()
		}
	}
}

// expect sends a line and expects a reply with a prefix.
func (c *caller) expect(line, want string) string {
	c.t.Helper()
	if line != "" {
		c.send(line + "\r\n")
	}
	got := c.answer()
	if !strings.HasPrefix(got, want) {
		c.t.Fatalf("%q was answered %q, want %q", line, got, want)
	}
	return got
}

// ended expects the end of the connection.
func (c *caller) ended() {
	c.t.Helper()
	if got := c.answer(); got != "" {
		c.t.Fatalf("the connection goes on with %q", got)
	}
}

// greeted returns a caller after EHLO.
func (w *world) greeted() *caller {
	w.t.Helper()
	c := w.call()
	c.expect("", "220 mx.example.org ESMTP")
	c.expect("EHLO peer.example.com", "250-mx.example.org\r\n")
	return c
}

// ready returns a caller after DATA.
func (w *world) ready(to string) *caller {
	w.t.Helper()
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 2.1.0")
	c.expect("RCPT TO:<"+to+">", "250 2.1.5")
	c.expect("DATA", "354 ")
	return c
}
