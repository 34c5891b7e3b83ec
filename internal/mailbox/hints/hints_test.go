package hints_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/hints"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// wire passes messages to another exchange.
type wire struct {
	to   *hints.Exchange
	sent chan string
}

// Publish passes a message on.
func (w *wire) Publish(subject string, message []byte) error {
	if subject == hints.Subject {
		w.to.Receive(message)
	}
	select {
	case w.sent <- string(message):
	default:
	}
	return nil
}

// newMember returns a store of an exchange, and the channel of what a watcher of account 7 is told.
func newMember(t *testing.T, e *hints.Exchange) (*hints.Member, chan mailbox.ModSeq) {
	t.Helper()
	m := e.Join()
	s := mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Announce: m.Announce})
	t.Cleanup(s.Close)
	m.Attach(s)
	t.Cleanup(m.Leave)
	told := make(chan mailbox.ModSeq, 100)
	t.Cleanup(s.Watch(7, func(state mailbox.ModSeq) { told <- state }))
	return m, told
}

func TestHintsReachTheStoresOfOtherNodes(t *testing.T) {
	a, b := hints.New(slog.New(slog.DiscardHandler)), hints.New(slog.New(slog.DiscardHandler))
	first, toldFirst := newMember(t, a)
	_, toldSecond := newMember(t, a)
	other, toldB := newMember(t, b)
	w := &wire{b, make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx, w) }()
	t.Cleanup(func() { cancel(); <-ended })
	await := func(what string, from chan mailbox.ModSeq, want mailbox.ModSeq) {
		t.Helper()
		select {
		case got := <-from:
			if got != want {
				t.Errorf("%s: state %d, want %d", what, got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatal(what + ": nobody was told")
		}
	}
	first.Announce(mailbox.Hint{Accounts: []mailbox.AccountState{{ID: 8, State: 1}, {ID: 7, State: 3}}})
	await("the other node", toldB, 3)
	await("the other store of the node", toldSecond, 3)
	if len(toldFirst) > 0 {
		t.Error("a store heard its own hint")
	}
	b.Lost()
	<-other.Again()
	b.Receive([]byte("{")) // is ignored
	b.Receive([]byte(`{"accounts":[{"id":7,"state":5}]}`))
	await("after a message that cannot be read", toldB, 5)
}

func TestAFullQueueDropsHintsAndDoesNotBlock(t *testing.T) {
	e := hints.New(slog.New(slog.DiscardHandler))
	m := e.Join()
	for i := range 10_000 {
		m.Announce(mailbox.Hint{Accounts: []mailbox.AccountState{{ID: 7, State: mailbox.ModSeq(i + 1)}}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	w := &wire{hints.New(slog.New(slog.DiscardHandler)), make(chan string, 10_000)}
	go func() { defer close(ended); e.Run(ctx, w) }()
	t.Cleanup(func() { cancel(); <-ended })
	for want := mailbox.ModSeq(1); want <= 4096; {
		var h mailbox.Hint
		message := <-w.sent
		if err := json.Unmarshal([]byte(message), &h); err != nil || len(message) > 1<<20 || len(h.Accounts) < 90 {
			t.Fatalf("a message has %d bytes and %d accounts, %v", len(message), len(h.Accounts), err)
		}
		for _, a := range h.Accounts {
			if a.State != want {
				t.Fatalf("state %d follows %d", a.State, want-1)
			}
			want++
		}
	}
	if len(w.sent) > 0 {
		t.Error("more hints were sent than the queue has")
	}
}
