package mailbox_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A post passes the hints of one store to another while it works, and counts the lost ones.
type post struct {
	mu   sync.Mutex
	to   *mailbox.Store
	down bool
	lost int
}

func (p *post) announce(h mailbox.Hint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		p.lost++
		return
	}
	p.to.Hear(h)
}

func (p *post) cut(down bool) { p.mu.Lock(); defer p.mu.Unlock(); p.down = down }

// states receives what a watcher is told.
type states chan mailbox.ModSeq

func watch(t testing.TB, s *mailbox.Store, id mailbox.AccountID) states {
	t.Helper()
	c := make(states, 100)
	t.Cleanup(s.Watch(id, func(state mailbox.ModSeq) { c <- state }))
	return c
}

// await waits until the watcher was told of a state.
func (c states) await(t testing.TB, state mailbox.ModSeq) {
	t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case got := <-c:
			if got == state {
				return
			}
		case <-timeout:
			t.Fatalf("no watcher was told of state %d", state)
		}
	}
}

// twoNodes returns two stores of one database. Changes of the second are announced to the first.
func twoNodes(t *testing.T) (w *world, other *world, p *post) {
	w = &world{db: storetest.Open(t), clock: &testClock{now: noon}}
	o := mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)}
	w.Store = mailbox.New(w.db, o)
	t.Cleanup(w.Close)
	p = &post{to: w.Store}
	o.Announce = p.announce
	other = &world{Store: mailbox.New(w.db, o), db: w.db, clock: w.clock}
	t.Cleanup(other.Close)
	return w, other, p
}

func stateOf(t testing.TB, w *world, id mailbox.AccountID) mailbox.ModSeq {
	t.Helper()
	a, err := w.Account(t.Context(), id)
	must(t, err)
	return a.State
}

func TestWatchersLearnOfChangesOfAnotherNode(t *testing.T) {
	w, other, _ := twoNodes(t)
	id := w.account(t, 1)
	seen := watch(t, w.Store, id)
	other.append(t, id, mailbox.InboxID, mail("hello", ""))
	seen.await(t, stateOf(t, w, id))
	if got := w.inbox(t, 1); len(got) != 1 {
		t.Errorf("the inbox has %d messages", len(got))
	}
	other.see(t, 1, mailbox.AddFlags)
	seen.await(t, stateOf(t, w, id))

	// A broadcast is a block, of which the watched account becomes rows.
	before := stateOf(t, w, id)
	other.depositAll(t, personal(lunch, 70))
	seen.await(t, before+1)
	if got := w.inbox(t, 1); len(got) != 2 {
		t.Errorf("the inbox has %d messages after a broadcast", len(got))
	}
	if n := w.rows(t, "accounts"); n != 1 {
		t.Errorf("%d accounts have rows, want the watched one", n)
	}

	must(t, other.Remove(t.Context(), id))
	seen.await(t, 0)
}

func TestAccessWatchersLearnWhatEndsLogins(t *testing.T) {
	w, other, _ := twoNodes(t)
	id := w.account(t, 1)
	c := &mailbox.Credential{Name: "phone", Verifier: mailbox.Verifier{Salt: []byte("salt"), Iterations: 4096, StoredKey: []byte("a"), ServerKey: []byte("b")}}
	must(t, w.AddCredential(t.Context(), id, c))
	for node, changing := range map[string]*world{"the same node": w, "another node": other} {
		changed := make(chan mailbox.AccountID, 10)
		stop := w.WatchAccess(func(id mailbox.AccountID) { changed <- id })
		for what, change := range map[string]func() error{
			"disabled": func() error { return changing.SetDisabled(t.Context(), id, true) },
			"enabled":  func() error { return changing.SetDisabled(t.Context(), id, false) },
			"revoked": func() error {
				if node == "another node" {
					return nil // one app password is enough
				}
				return changing.RemoveCredential(t.Context(), id, c.ID)
			},
		} {
			must(t, change())
			if what == "revoked" && node == "another node" {
				continue
			}
			if got := <-changed; got != id {
				t.Errorf("%s by %s: account %d", what, node, got)
			}
		}
		stop()
		must(t, changing.SetDisabled(t.Context(), id, false))
		if len(changed) > 0 {
			t.Errorf("%s: a change is reported after stop", node)
		}
	}
	must(t, other.Remove(t.Context(), id))
}

// Hints are lost while the nodes cannot reach each other.
func TestChangesWhoseHintIsLostAreFound(t *testing.T) {
	w, other, p := twoNodes(t)
	id := w.account(t, 1)
	again := make(chan struct{})
	follow := func(t *testing.T) { again <- struct{}{} } // is taken when the last read is over
	ended := make(chan struct{})
	go func() { defer close(ended); w.Follow(t.Context(), again) }()
	t.Cleanup(func() { <-ended })
	follow(t)
	seen := watch(t, w.Store, id)
	p.cut(true)
	other.append(t, id, mailbox.InboxID, mail("hello", ""))
	follow(t)
	seen.await(t, stateOf(t, w, id))

	before := stateOf(t, w, id)
	other.depositAll(t, personal(lunch, 70))
	follow(t)
	seen.await(t, before+1)
	p.cut(false)
	other.depositAll(t, personal(fanfare.EventRef{Day: lunch.Day, Seq: 6}, 70)) // its hint arrives
	seen.await(t, before+2)
	follow(t)
	follow(t)
	if got := w.inbox(t, 1); len(got) != 3 {
		t.Errorf("the inbox has %d messages, want 3", len(got))
	}

	p.cut(true)
	barred := make(chan mailbox.AccountID, 10)
	t.Cleanup(w.WatchAccess(func(id mailbox.AccountID) { barred <- id }))
	must(t, other.SetDisabled(t.Context(), id, true))
	follow(t)
	if got := <-barred; got != id {
		t.Errorf("account %d was disabled", got)
	}
	must(t, other.Remove(t.Context(), id))
	follow(t)
	seen.await(t, 0)
	if p.lost == 0 {
		t.Error("no hint was lost")
	}
}
