package smtp

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	fanfare "fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func serveAll(t *testing.T, cfg Config, p *peer, all []*driver.Message) (*Driver, *testQueue) {
	t.Helper()
	queue := newQueue(t, slices.Clone(all)...)
	queue.watch(p)
	d := New(cfg)
	if err := d.Serve(t.Context(), queue); err != nil {
		t.Errorf("%v; %q", err, p.lines())
	}
	queue.done()
	return d, queue
}

func wantAll(t *testing.T, queue *testQueue, all []*driver.Message, want string) {
	t.Helper()
	for i, got := range queue.tells(all) {
		if got != want {
			t.Errorf("message %d: %s, want %s", i, got, want)
		}
	}
}

func TestPeerWithoutPipeliningGetsLockStep(t *testing.T) {
	p := startPeer(t, nil, "8BITMIME")
	all := messages(4)
	d, queue := serveAll(t, patient(p.addr), p, all)
	wantAll(t, queue, all, "taken 250")
	if s := d.Status(); s.Mode != LockStep || !strings.Contains(s.Reason, "PIPELINING") {
		t.Errorf("status %+v", s)
	}
}

func TestPeerWithoutEHLOGetsHELO(t *testing.T) {
	p := startPeer(t, func(now exchange) string {
		if now.at == atEHLO {
			return "502 5.5.1 not implemented"
		}
		return standard
	})
	all := messages(2)
	_, queue := serveAll(t, patient(p.addr), p, all)
	wantAll(t, queue, all, "taken 250")
}

// A server that discards input after the final dot, or breaks on it, gets a slower mode
// from then on; only the message in flight may be lost.
func TestPeerThatBreaksOnGroupingGetsPlainPipelining(t *testing.T) {
	bodies := 0
	p := startPeer(t, func(now exchange) string {
		if now.conn == 0 && now.at == atBody {
			bodies++
			return hangUp
		}
		return standard
	})
	all := messages(4)
	queue := newQueue(t, slices.Clone(all)...)
	d := New(patient(p.addr))
	if err := d.Serve(t.Context(), queue); err == nil {
		t.Error("a lost connection gave no error")
	}
	if s := d.Status(); s.Mode != Pipelining || s.Reason == "" {
		t.Errorf("status %+v", s)
	}
	if err := d.Serve(t.Context(), queue); err != nil {
		t.Error(err)
	}
	queue.done()
	if got := queue.tells(all); !slices.Equal(got, []string{"lost 0", "taken 250", "taken 250", "taken 250"}) {
		t.Error(got)
	}
}

func TestComplaintAboutPipeliningLeadsToLockStep(t *testing.T) {
	p := startPeer(t, func(now exchange) string {
		if now.conn < 2 && (now.at == atMail && strings.Contains(now.line, "s1@") || now.conn == 1 && now.at == atMail) {
			return "503 5.5.0 Error: improper use of SMTP command pipelining"
		}
		return standard
	})
	all := messages(3)
	d, queue := serveAll(t, patient(p.addr), p, all)
	wantAll(t, queue, all, "taken 250")
	if s := d.Status(); s.Mode != LockStep || !strings.Contains(s.Reason, "improper") {
		t.Errorf("status %+v", s)
	}
}

func TestOneBrokenConnectionDoesNotSlowDownAProvenPeer(t *testing.T) {
	var l pipelineMode
	l.highest.Store(uint32(Grouped))
	if !l.connectionBroke(Grouped, errors.New("cut")) || l.mode() != Pipelining {
		t.Error("an unproven mode was kept")
	}
	l.confirm(Grouped) // by another connection
	if l.mode() != Grouped || l.status().Reason != "" {
		t.Error("a proven mode was not restored")
	}
	if l.connectionBroke(Grouped, errors.New("cut")) || l.mode() != Grouped {
		t.Error("a proven mode was given up")
	}
	l.refused(Grouped, "no pipelining please")
	l.confirm(Grouped)
	if l.mode() != Pipelining {
		t.Error("the refusal of the peer was forgotten")
	}
}

func TestUnreleasedMessageIsNeverSent(t *testing.T) {
	for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
		p := startPeer(t, nil)
		all := messages(5)
		queue := newQueue(t, slices.Clone(all)...)
		queue.watch(p)
		queue.held[all[0]], queue.held[all[2]] = true, true
		cfg := patient(p.addr)
		cfg.Grouping = grouping
		if err := New(cfg).Serve(t.Context(), queue); err != nil {
			t.Error(err)
		}
		queue.done()
		want := []string{"forgotten", "taken 250", "forgotten", "taken 250", "taken 250"}
		if got := queue.tells(all); !slices.Equal(got, want) {
			t.Errorf("%s: %q", grouping, got)
		}
	}
}

func TestConnectionEndsAfterMaxMessages(t *testing.T) {
	p := startPeer(t, nil)
	cfg := patient(p.addr)
	cfg.MaxMessages = 2
	all := messages(5)
	_, queue := serveAll(t, cfg, p, all)
	wantAll(t, queue, all, "taken 250")
	if got := p.connections(); got < 3 {
		t.Errorf("%d connections", got)
	}
	if quits := strings.Count(strings.Join(p.lines(), "\n"), "QUIT"); quits != p.connections() {
		t.Errorf("%d farewells on %d connections", quits, p.connections())
	}
}

func TestConnectionClosedWhileIdleIsReplaced(t *testing.T) {
	for name, answer := range map[string]string{"silently": hangUp, "with 421": "421 4.4.2 idle too long"} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, func(now exchange) string {
				if now.conn == 0 && now.at == atMail && strings.Contains(now.line, "s1@") {
					return answer
				}
				return standard
			})
			all := messages(2)
			queue := newQueue(t, all[0])
			queue.onEmpty = func() { queue.put(all[1]) }
			if err := New(patient(p.addr)).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			wantAll(t, queue, all, "taken 250")
			if queue.returned[all[1]] != 1 || p.connections() != 2 {
				t.Errorf("returned %d times, %d connections", queue.returned[all[1]], p.connections())
			}
		})
	}
}

func TestIdleConnectionIsReopenedForTheNextMessage(t *testing.T) {
	quit := make(chan struct{})
	p := startPeer(t, func(now exchange) string {
		if now.at == atQuit && now.conn == 0 {
			close(quit)
		}
		return standard
	})
	all := messages(2)
	queue := newQueue(t, all[0])
	queue.blocked = true
	cfg := patient(p.addr)
	cfg.IdleTimeout = time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(cfg).Serve(ctx, queue) }()
	<-quit
	queue.put(all[1])
	for range 2 {
		<-queue.reported
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	queue.done()
	wantAll(t, queue, all, "taken 250")
}

func TestTheEndOfTheContextFinishesTheBodyAndReturnsTheRest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	p := startPeer(t, func(now exchange) string {
		if now.at == atBody && strings.Contains(now.line, "s1@") {
			stop()
		}
		return standard
	})
	all := messages(4)
	queue := newQueue(t, slices.Clone(all)...)
	if err := New(patient(p.addr)).Serve(ctx, queue); err != nil {
		t.Error(err)
	}
	queue.done()
	if got := queue.tells(all); !slices.Equal(got, []string{"taken 250", "taken 250", "waiting", "waiting"}) {
		t.Error(got)
	}
}

func TestTheEndOfTheContextCutsAnEnvelopeShort(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	release := make(chan struct{})
	p := startPeer(t, func(now exchange) string {
		if now.at == atRcpt {
			stop()
			<-release
		}
		return standard
	})
	defer close(release)
	all := messages(1)
	queue := newQueue(t, slices.Clone(all)...)
	if err := New(patient(p.addr)).Serve(ctx, queue); err != nil {
		t.Error(err)
	}
	queue.done()
	wantAll(t, queue, all, "waiting")
}

func TestNothingIsSentWhileOutcomesCannotBeRecorded(t *testing.T) {
	p := startPeer(t, nil)
	all := messages(3)
	queue := newQueue(t, slices.Clone(all)...)
	queue.fail = errNotKept
	if err := New(patient(p.addr)).Serve(t.Context(), queue); !errors.Is(err, errNotKept) {
		t.Errorf("err %v", err)
	}
	if n := strings.Count(strings.Join(p.lines(), "\n"), "(body)"); n != 1 {
		t.Errorf("%d bodies were sent", n)
	}
	if got := queue.tells(all); got[1] != "waiting" || got[2] != "waiting" {
		t.Error(got)
	}
}

func TestSilentPeerTimesOut(t *testing.T) {
	release := make(chan struct{})
	p := startPeer(t, func(now exchange) string {
		if now.at == atBody {
			<-release
		}
		return standard
	})
	defer close(release)
	cfg := patient(p.addr)
	cfg.SendTimeout = 20 * time.Millisecond
	all := messages(1)
	queue := newQueue(t, slices.Clone(all)...)
	if err := New(cfg).Serve(t.Context(), queue); err == nil {
		t.Error("no error")
	}
	queue.done()
	wantAll(t, queue, all, "lost 0")
}

func TestSlowPeerDoesNotTimeOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		// The deadline of the socket is early; the intended limit is not.
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		<-tick.C
		_, _ = c.Write([]byte("220 slow\r\n"))
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	w := &deadlineConn{Conn: nc}
	w.setDeadline(time.Now().Add(10*time.Millisecond), false)
	w.setDeadline(time.Now().Add(10*time.Second), false)
	buf := make([]byte, 100)
	if n, err := w.Read(buf); err != nil || string(buf[:n]) != "220 slow\r\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestConnectErrorNamesThePeer(t *testing.T) {
	const addr = "127.0.0.1:1" // nobody uses that port
	all := messages(1)
	queue := newQueue(t, slices.Clone(all)...)
	err := New(patient(addr)).Serve(t.Context(), queue)
	if fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), addr) {
		t.Errorf("err %v", err)
	}
	wantAll(t, queue, all, "waiting")
}

func TestUnsendableMessageIsRefusedLocally(t *testing.T) {
	p := startPeer(t, nil, "PIPELINING", "SIZE 200")
	good := messages(6)
	big := &driver.Message{From: "a@example.com", To: "big@example.com", Body: make([]byte, 100), Attachments: make([]byte, 101)}
	bits := &driver.Message{From: "a@example.com", To: "eight@example.com", Body: []byte("x"), EightBit: true}
	utf := &driver.Message{From: "a@example.com", To: "jürgen@example.com", Body: []byte("x")}
	smuggled := &driver.Message{From: "a@example.com", To: "x@example.com>\r\nRCPT TO:<y@example.com", Body: []byte("x")}
	sender := &driver.Message{From: "a@example.com\x00", To: "x@example.com", Body: []byte("x")}
	nobody := &driver.Message{From: "a@example.com", Body: []byte("x")}
	bad := []*driver.Message{big, bits, utf, smuggled, sender, nobody}
	var all []*driver.Message
	for i := range bad {
		all = append(all, good[i], bad[i])
	}
	_, queue := serveAll(t, patient(p.addr), p, all)
	wantAll(t, queue, good, "taken 250")
	wantAll(t, queue, bad, "permanent 0")
	for i, text := range []string{"limit of 200", "8BITMIME", "SMTPUTF8", "character", "sender", "empty"} {
		if got := queue.outcomes[bad[i]].Text; !strings.Contains(got, text) {
			t.Errorf("%q does not contain %q", got, text)
		}
	}
	if log := strings.Join(p.lines(), "\n"); strings.Contains(log, "y@") || strings.Contains(log, "big@") {
		t.Error(log)
	}
}

func TestEnvelopeDeclaresSizeAndContent(t *testing.T) {
	p := startPeer(t, nil)
	message := &driver.Message{From: "ä@example.com", To: "b@example.com", Body: []byte("Ünf\r\n"), Attachments: []byte("QQ==\r\n"), EightBit: true}
	queue := newQueue(t, message)
	if err := New(patient(p.addr)).Serve(t.Context(), queue); err != nil {
		t.Error(err)
	}
	if log := strings.Join(p.lines(), "\n"); !strings.Contains(log, "MAIL FROM:<ä@example.com> SIZE=12 BODY=8BITMIME SMTPUTF8\n") {
		t.Error(log)
	}
}
