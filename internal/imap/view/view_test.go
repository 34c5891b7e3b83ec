package view_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func newStore(t *testing.T) *mailbox.Store {
	t.Helper()
	s := mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	if _, err := s.Create(t.Context(), mailbox.Owner{ID: 1, Service: "press", Address: "a@example.org"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// change makes a random change in the inbox.
func change(t *testing.T, s *mailbox.Store, r *rand.Rand) {
	t.Helper()
	messages, _, err := s.Messages(t.Context(), 1, mailbox.InboxID)
	if err != nil {
		t.Error(err)
		return
	}
	var some []mailbox.EmailID
	for _, m := range messages {
		if r.IntN(4) == 0 {
			some = append(some, m.Email)
		}
	}
	switch n := r.IntN(5); {
	case n < 2 || len(some) == 0:
		_, err = s.Append(t.Context(), 1, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: []byte("Subject: x\r\n\r\n"), Keywords: []string{[]string{"a", "B", "b", "c"}[r.IntN(4)]}}})
	case n == 2:
		_, _, err = s.Expunge(t.Context(), 1, some)
	case n == 3:
		_, _, err = s.Move(t.Context(), 1, some, mailbox.MailboxID(1+r.IntN(2)))
	default:
		_, _, err = s.UpdateFlags(t.Context(), 1, []mailbox.FlagChange{{Emails: some, Mode: mailbox.FlagMode(r.IntN(3)), Flags: mailbox.Flags(r.IntN(32))}})
	}
	if err != nil {
		t.Error(err)
	}
}

// equals compares a snapshot with the mailbox.
func equals(t *testing.T, s *mailbox.Store, got *view.Snapshot) {
	t.Helper()
	want, m, err := s.Messages(t.Context(), 1, mailbox.InboxID)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Messages, want) || got.State != m.HighestMod || got.UIDNext != m.UIDNext {
		t.Fatalf("the snapshot has %d messages, state %d, next UID %d; the mailbox %d, %d, %d", len(got.Messages), got.State, got.UIDNext, len(want), m.HighestMod, m.UIDNext)
	}
}

func TestSnapshotsEqualTheMailbox(t *testing.T) {
	s := newStore(t)
	h := view.New(s).Open(1, mailbox.InboxID, func() {})
	defer h.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		for range r.IntN(4) {
			change(t, s, r)
		}
		got, err := h.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equals(t, s, got)
		again, err := h.Latest(t.Context())
		if err != nil || again != got {
			t.Fatalf("a snapshot was read twice without a change: %v", err)
		}
		for i := range got.Messages {
			if m := &got.Messages[i]; got.ByUID(m.UID) != m || len(got.Since(m.UID)) != len(got.Messages)-i {
				t.Fatalf("UID %d is not found", m.UID)
			}
		}
		if got.ByUID(got.UIDNext) != nil {
			t.Error("the next UID is found")
		}
	}
}

func TestSessionsShareSnapshotsAndHearOfChanges(t *testing.T) {
	s := newStore(t)
	cache := view.New(s)
	var heard [2]sync.WaitGroup
	var once [2]sync.Once
	handles := make([]*view.Handle, 2)
	for i := range handles {
		heard[i].Add(1)
		handles[i] = cache.Open(1, mailbox.InboxID, func() { once[i].Do(heard[i].Done) })
	}
	change(t, s, rand.New(rand.NewPCG(2, 2)))
	heard[0].Wait()
	heard[1].Wait()
	a, err := handles[0].Latest(t.Context())
	b, err2 := handles[1].Latest(t.Context())
	if err != nil || err2 != nil || a != b || len(a.Messages) != 1 {
		t.Errorf("%p and %p, %v, %v", a, b, err, err2)
	}
	handles[0].Close()
	handles[1].Close()
	change(t, s, rand.New(rand.NewPCG(2, 2)))
	h := cache.Open(1, mailbox.InboxID, func() {})
	defer h.Close()
	c, err := h.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equals(t, s, c)
}

func TestKeywordsAreListedOnce(t *testing.T) {
	s := &view.Snapshot{Messages: []mailbox.Message{{UID: 1, Keywords: "b Work"}, {UID: 2}, {UID: 3, Keywords: "B a work"}}}
	if got := s.Keywords(); !slices.Equal(got, []string{"Work", "a", "b"}) {
		t.Errorf("keywords %q", got)
	}
}

func TestARemovedMailboxIsAnError(t *testing.T) {
	s := newStore(t)
	m, err := s.CreateMailbox(t.Context(), 1, mailbox.NewMailbox{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	h := view.New(s).Open(1, m.ID, func() {})
	defer h.Close()
	if _, err := h.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveMailbox(t.Context(), 1, mailbox.MailboxRemoval{ID: m.ID, WithMessages: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Latest(t.Context()); !errors.Is(err, mailbox.ErrNoMailbox) {
		t.Errorf("error %v", err)
	}
}

func TestARemovedAccountIsAnError(t *testing.T) {
	s := newStore(t)
	change(t, s, rand.New(rand.NewPCG(5, 5)))
	h := view.New(s).Open(1, mailbox.InboxID, func() {})
	defer h.Close()
	if _, err := h.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Latest(t.Context()); !errors.Is(err, mailbox.ErrNoAccount) && !errors.Is(err, mailbox.ErrNoMailbox) {
		t.Errorf("error %v", err)
	}
}

// oldStore has a log of changes that never reaches back.
type oldStore struct{ *mailbox.Store }

func (oldStore) Changes(context.Context, mailbox.AccountID, mailbox.MailboxID, mailbox.ModSeq) (mailbox.Changes, error) {
	return mailbox.Changes{}, mailbox.ErrOldModSeq
}

func TestEverythingIsReadIfTheLogIsTooShort(t *testing.T) {
	s := newStore(t)
	h := view.New(oldStore{s}).Open(1, mailbox.InboxID, func() {})
	defer h.Close()
	r := rand.New(rand.NewPCG(3, 3))
	for range 30 {
		change(t, s, r)
		got, err := h.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equals(t, s, got)
	}
}

func TestConcurrentChangesAreNotLost(t *testing.T) {
	s := newStore(t)
	h := view.New(s).Open(1, mailbox.InboxID, func() {})
	defer h.Close()
	var running sync.WaitGroup
	for i := range uint64(4) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(4, i))
			for range 40 {
				change(t, s, r)
				if _, err := h.Latest(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	got, err := h.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equals(t, s, got)
}
