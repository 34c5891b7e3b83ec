package mailbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// storedContents returns the uses of each content, and how many contents have bytes.
func storedContents(t *testing.T, db store.Database) (uses map[int64]int64, data int64) {
	t.Helper()
	must(t, db.Mailboxes().Read(t.Context(), func(s store.Session) error {
		uses = map[int64]int64{}
		err := s.Each("copy_contents", func(r store.Row) error { uses[r.Int64(0)] = r.Int64(4); return nil }, int64(0), int64(1_000_000))
		return errors.Join(err, s.Each("count_content_data", func(r store.Row) error { data = r.Int64(0); return nil }))
	}))
	return uses, data
}

// checkUses compares the uses of the contents with the messages of the accounts.
func checkUses(t *testing.T, db store.Database, accounts ...full) {
	t.Helper()
	want := map[int64]int64{}
	for _, a := range accounts {
		for _, m := range a.messages {
			want[int64(m.Content)]++
		}
	}
	uses, data := storedContents(t, db)
	for id, n := range uses {
		if n != want[id] {
			t.Errorf("content %d has %d uses, want %d", id, n, want[id])
		}
		delete(want, id)
	}
	if len(want) > 0 || data != int64(len(uses)) {
		t.Errorf("contents are missing: %v; %d of %d have bytes", want, data, len(uses))
	}
}

// Two stores on one database stand for two nodes of a cluster, which share neither a queue nor a lock.
func TestTwoNodesChangeTheSameAccounts(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		other := mailbox.New(w.db, mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(other.Close)
		const accounts, workers, steps = 4, 3, 25
		body := func(n int) []byte { return mail("shared", fmt.Sprint("body ", n), "Message-ID: <shared@x>") }
		var wg sync.WaitGroup
		for i, s := range []*mailbox.Store{w.Store, other} {
			for worker := range workers {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(i), uint64(worker)))
					uids := map[mailbox.AccountID]mailbox.UID{} // the last one that this worker was given
					for range steps {
						id := mailbox.AccountID(1 + r.IntN(accounts))
						errs := s.Deliver(t.Context(), mailbox.Delivery{Content: body(r.IntN(3)), To: []mailbox.Owner{owner(int(id)), owner(1 + int(id)%accounts)}})
						list, err := s.Append(t.Context(), id, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: body(r.IntN(3))}})
						if err = errors.Join(append(errs, err)...); err != nil {
							t.Errorf("node %d: %v", i, err)
							return
						}
						if list[0].UID <= uids[id] {
							t.Errorf("UID %d follows %d", list[0].UID, uids[id])
						}
						uids[id] = list[0].UID
						_, copies, err := s.Copy(t.Context(), id, []mailbox.EmailID{list[0].Email, mailbox.EmailID(1 + r.IntN(50))}, 2)
						if err == nil && len(copies) > 0 { // another worker may have removed the message
							_, _, err = s.Expunge(t.Context(), id, []mailbox.EmailID{copies[0].Email, copies[0].Email - mailbox.EmailID(1+r.IntN(20))})
						}
						if err != nil {
							t.Errorf("node %d: %v", i, err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		var all []full
		for n := 1; n <= accounts; n++ {
			f := w.full(t, mailbox.AccountID(n))
			checkCounts(t, f)
			threads := map[mailbox.ThreadID]bool{}
			for _, m := range f.messages {
				threads[m.Thread] = true
			}
			if len(threads) != 1 {
				t.Errorf("account %d: the messages of one conversation have the threads %v", n, threads)
			}
			all = append(all, f)
		}
		checkUses(t, w.db, all...)
	})
}

// The server delivers, changes and removes messages while its data move to another database.
func TestAMoveTakesMailboxesThatAreInUse(t *testing.T) {
	places := map[string]func() string{"sqlite": t.TempDir, "postgres": func() string { return pgtest.Prepared(t) }}
	for from, to := range map[string]string{"sqlite": "postgres", "postgres": "sqlite"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			source, target := storetest.OpenAt(t, places[from]()), storetest.OpenAt(t, places[to]())
			db := move.NewSwitch(move.Side{DB: source, Name: from})
			clk := &testClock{now: noon}
			o := mailbox.Options{Clock: clk, Logger: slog.New(slog.DiscardHandler)}
			w := &world{Store: mailbox.New(db, o), db: db, clock: clk}
			id := w.account(t, 1)
			for i := range 300 { // messages that are there before the move
				w.append(t, id, mailbox.InboxID, mail("before", fmt.Sprint(i)))
			}
			stop, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- useUntil(t, w, stop) }()
			_, err := db.Move(t.Context(), move.Side{DB: target, Name: to}, move.Options{Dir: t.TempDir(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)})
			close(stop)
			must(t, errors.Join(err, <-ended))
			var before, after []full
			moved := &world{Store: mailbox.New(target, o), db: target, clock: clk}
			t.Cleanup(moved.Close)
			must(t, w.Remove(t.Context(), 3)) // of the source; of the target below
			must(t, moved.Remove(t.Context(), 3))
			for n := 1; n <= 2; n++ {
				before = append(before, w.full(t, mailbox.AccountID(n)))
				after = append(after, moved.full(t, mailbox.AccountID(n)))
				after[n-1].compare(t, fmt.Sprintf("account %d", n), before[n-1])
				checkCounts(t, after[n-1])
			}
			checkUses(t, target, after...)
			for email := range after[0].messages {
				a, errA := w.Content(t.Context(), id, email)
				b, errB := moved.Content(t.Context(), id, email)
				if must(t, errors.Join(errA, errB)); !bytes.Equal(a, b) {
					t.Fatalf("message %d has the bytes %q, want %q", email, b, a)
				}
			}
			w.Close()
			must(t, db.Close())
		})
	}
}

// useUntil changes the accounts 1 and 2, and creates and removes the account 3, until stop is closed. The number of changes is limited, because a
// move ends only when the target, which may be slower, has repeated all of them.
func useUntil(t *testing.T, w *world, stop chan struct{}) error {
	ctx := t.Context()
	for i := range 300 {
		select {
		case <-stop:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		content := mail("meanwhile", fmt.Sprint("body ", i%50), fmt.Sprintf("Message-ID: <%d@x>", i%10))
		err := errors.Join(w.Deliver(ctx, mailbox.Delivery{Content: content, To: []mailbox.Owner{owner(1), owner(2), owner(3)}})...)
		email := mailbox.EmailID(1 + i)
		steps := []func() error{
			func() error {
				_, _, err := w.UpdateFlags(ctx, 1, []mailbox.FlagChange{{Emails: []mailbox.EmailID{email}, Mode: mailbox.AddFlags, Flags: mailbox.Seen, Keywords: []string{"kept"}}})
				return err
			},
			func() error { _, _, err := w.Move(ctx, 1, []mailbox.EmailID{email}, 4); return err },
			func() error { _, _, err := w.Copy(ctx, 2, []mailbox.EmailID{email}, 4); return err },
			func() error { _, _, err := w.Expunge(ctx, 1, []mailbox.EmailID{email, email + 1}); return err },
			func() error { return w.Remove(ctx, 3) },
			func() error {
				w.clock.advance(30 * time.Minute)
				return w.RemoveUnused(ctx)
			},
		}
		if err == nil {
			err = steps[i%len(steps)]()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The copy of a backup of PostgreSQL is made of SQLite files.
func TestAnExportHasTheMailboxes(t *testing.T) {
	from, to := storetest.Open(t), storetest.OpenAt(t, t.TempDir())
	clk := &testClock{now: noon}
	o := mailbox.Options{Clock: clk, Logger: slog.New(slog.DiscardHandler)}
	w := &world{Store: mailbox.New(from, o), db: from, clock: clk}
	t.Cleanup(w.Close)
	id := w.account(t, 1)
	large := mail("large", string(bytes.Repeat([]byte("0123456789abcdef"), 600_000)))
	first := w.append(t, id, mailbox.InboxID, large)
	for i := range 3 {
		w.append(t, id, mailbox.InboxID, mail("small", fmt.Sprint(i)))
	}
	for range 2 { // the second replaces the first
		must(t, move.ExportMailboxes(t.Context(), from, to))
	}
	copied := &world{Store: mailbox.New(to, o), db: to, clock: clk}
	t.Cleanup(copied.Close)
	got := copied.full(t, id)
	got.compare(t, "the export", w.full(t, id))
	if data, err := copied.Content(t.Context(), id, first.Email); err != nil || !bytes.Equal(data, large) {
		t.Errorf("the large message has %d bytes, want %d, %v", len(data), len(large), err)
	}
	next := copied.append(t, id, mailbox.InboxID, mail("next", "not stored before"))
	if uses, data := storedContents(t, to); next.Content <= first.Content || len(uses) != 5 || data != 5 {
		t.Errorf("the new content %d was added to %v, %d have bytes", next.Content, uses, data)
	}
}
