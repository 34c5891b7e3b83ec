package broker

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// TestAConnectionThatArrivesWhileTheBrokerStopsIsRefused: Stop closes the connections that it finds. One that is added later
// would stay open: its peer would wait for a broker that does nothing any more, and Stop for the peer.
func TestAConnectionThatArrivesWhileTheBrokerStopsIsRefused(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind})
		s, _, err := b.find(testService, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !b.enter() { // as a connection that is served does, before it is added
			t.Fatal("the broker stops already")
		}
		stopped := make(chan error, 1)
		go func() { stopped <- b.Stop(t.Context()) }()
		for b.enter() {
			b.conns.Done()
			<-time.After(time.Millisecond)
		}
		_, far := pipe()
		if _, err := s.p.connect(far, "a", 1); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("the instance got %v", err)
		}
		if _, err := s.connect(far, "one", session.Position{}); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("the client got %v", err)
		}
		b.conns.Done()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// refusal returns the code of the problem that a client receives instead of a welcome, and that of the end of its connection.
func refusal(t *testing.T, b *Broker, id, client string) (code fanfare.Code, end int) {
	t.Helper()
	near, far := pipe()
	if err := b.ServeClient(t.Context(), far, testService, id, client, session.Position{}); err == nil {
		t.Fatal("the client was not refused")
	}
	f, err := near.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, payload, _ := frame.Parse(f)
	var problem struct{ Code fanfare.Code }
	if err := json.Unmarshal(payload, &problem); err != nil || h.Type != frame.Closed {
		t.Fatalf("a frame of type %d: %s", h.Type, payload)
	}
	return problem.Code, *near.code
}

// TestASessionThatAnotherBrokerHasTakenOverIsThere: a client that connects again to the earlier broker must try again. An
// answer that the session does not exist would end it.
func TestASessionThatAnotherBrokerHasTakenOverIsThere(t *testing.T) {
	log, defs := newMemoryLog(), define(echo)
	old := startBroker(t, log, defs)
	info := open(t, old, session.Options{Worker: "echo", Kind: session.Durable, Name: "a name"})
	c := attach(t, old, info.ID, "one", 0)
	s, _, err := old.find(testService, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	next := startBroker(t, log, defs)
	_ = c.conn.Write(t.Context(), requestsFrame(1, numbered(1, 1)...)) // fails if the log has refused the first entry of the client by now
	<-c.served                                                         // the log has refused the request
	if *c.conn.code != session.CloseGoingAway {
		t.Errorf("the connection ended with code %d", *c.conn.code)
	}
	if code, end := refusal(t, old, info.ID, "one"); code != fanfare.Unavailable || end != session.CloseGoingAway {
		t.Errorf("the client got the problem %s and the code %d", code, end)
	}
	if _, err := s.connect(c.conn, "one", session.Position{}); fanfare.CodeOf(err) != fanfare.Unavailable { // found before it was taken over
		t.Errorf("the client got %v", err)
	}
	for _, name := range []string{"a name", "another name", ""} { // the next broker would not know the session
		if _, err := old.Open(t.Context(), testService, session.Options{Worker: "echo", Kind: session.Durable, Name: name}); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("a session with the name %q was opened: %v", name, err)
		}
	}
	if _, err := old.Session("other", info.ID); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("another service got %v", err)
	}
	i := join(t, next, "echo", "a", 1)
	go i.serve()
	again := attach(t, next, info.ID, "one", 0)
	again.send(1, numbered(1, 1)...)
	again.until("the response", func() bool { return len(again.responses) == 1 })
}

// An unreadableLog cannot read entries while it is closed.
type unreadableLog struct {
	*memoryLog
	closed atomic.Bool
}

var errUnreadable = errors.New("the log cannot be read")

func (l *unreadableLog) Entries(ctx context.Context, number uint64, client uint32, kind session.EntryKind, from, high uint64, fn func(session.Entry) bool) error {
	if l.closed.Load() {
		return errUnreadable
	}
	return l.memoryLog.Entries(ctx, number, client, kind, from, high, fn)
}

// TestAClientTriesAgainIfItsIDsCannotBeRead: a database that is away for a moment must not end a client.
func TestAClientTriesAgainIfItsIDsCannotBeRead(t *testing.T) {
	log, defs := &unreadableLog{memoryLog: newMemoryLog()}, define(echo)
	b := startBroker(t, log, defs)
	info := open(t, b, session.Options{Worker: "echo", Kind: session.Durable})
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, frame.Request{ID: []byte("x")})
	c.until("the request is kept", func() bool { return c.accepted == 1 })
	stopBroker(t, b)
	b = startBroker(t, log, defs)
	log.closed.Store(true)
	if code, end := refusal(t, b, info.ID, "one"); code != fanfare.Unavailable || end != session.CloseGoingAway {
		t.Errorf("the client got the problem %s and the code %d", code, end)
	}
	log.closed.Store(false)
	attach(t, b, info.ID, "one", 0)
}

// TestASessionEndsOnlyWithoutAnInstance: an instance that connects before the end answers the requests, and one that connects
// after it gets none of them.
func TestASessionEndsOnlyWithoutAnInstance(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(echo))
	first := open(t, b, session.Options{Worker: "echo", Kind: session.Interactive})
	c := attach(t, b, first.ID, "one", 0)
	lost := join(t, b, "echo", "a", 1)
	c.send(1, numbered(1, 3)...)
	lost.next()
	if ended, err := b.EndWithoutInstance(t.Context(), testService, first.ID, "no instance"); ended || err != nil {
		t.Fatalf("with an instance, the session ended: %v, %v", ended, err)
	}
	lost.kill()
	for range 2 { // the second call finds a session that has ended
		if ended, err := b.EndWithoutInstance(t.Context(), testService, first.ID, "no instance"); !ended || err != nil {
			t.Fatalf("without an instance, the session ended: %v, %v", ended, err)
		}
	}
	c.until("the end of the session", func() bool { return len(c.problems) > 0 })
	if info, err := b.Session(testService, first.ID); err != nil || info.State != session.Ended || info.Reason != "no instance" {
		t.Errorf("the session is %+v, %v", info, err)
	}

	second := open(t, b, session.Options{Worker: "echo", Kind: session.Interactive})
	attach(t, b, second.ID, "one", 0).send(1, numbered(1, 1)...)
	late := join(t, b, "echo", "b", 8)
	if task := late.next(); ID(task.Session) != second.ID || len(late.tasks) > 0 {
		t.Errorf("the instance got a task of session %d, and %d more", task.Session, len(late.tasks))
	}
}
