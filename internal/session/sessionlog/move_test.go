package sessionlog_test

import (
	"errors"
	"log/slog"
	"testing"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A broker appends, purges and takes over while the data move to another database: all of it is there afterwards.
func TestAMoveTakesSessionsThatAreInUse(t *testing.T) {
	places := map[string]func() string{"sqlite": t.TempDir, "postgres": func() string { return pgtest.Prepared(t) }}
	for from, to := range map[string]string{"sqlite": "postgres", "postgres": "sqlite"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			source, target := storetest.OpenAt(t, places[from]()), storetest.OpenAt(t, places[to]())
			db := move.NewSwitch(move.Side{DB: source, Name: from})
			l := sessionlog.New(db)
			r, purged := opened(t, l), opened(t, l)
			for i := range uint64(100) { // is there before the move
				put(t, l, r, group(r, 1, session.RequestEntry, i*100+1, 100))
				put(t, l, purged, group(purged, 1, session.RequestEntry, i*100+1, 100))
			}
			stop, ended := make(chan struct{}), make(chan error, 1)
			next := uint64(10_001)
			go func() {
				for i := range 2000 { // a move ends only when the target, which may be slower, has repeated all changes
					a := &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}, Entries: []session.Entry{group(r, 1, session.RequestEntry, next, 100)},
						Clients: []session.ClientUpdate{{Session: r.Number, Client: session.ClientRecord{Number: 1, Name: "desk", Requests: next + 99}}}}
					err := l.Append(t.Context(), a)
					if err == nil {
						next += 100
						switch i % 8 {
						case 0:
							r.Epoch, err = l.TakeOver(t.Context(), r.Number)
						case 1:
							err = l.PurgeClient(t.Context(), purged.Number, 1)
						case 2:
							err = l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{purged.Number: purged.Epoch}, Entries: []session.Entry{group(purged, 1, session.RequestEntry, next, 10)}})
						case 3:
							if stale := l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{r.Number: 0}, Entries: a.Entries}); !errors.Is(stale, session.ErrFenced) {
								err = errors.Join(stale, errors.New("an append without a valid epoch was stored"))
							}
						}
					}
					select {
					case <-stop:
						ended <- err
						return
					default:
					}
					if err != nil {
						ended <- err
						return
					}
				}
				ended <- nil
			}()
			_, err := db.Move(t.Context(), move.Side{DB: target, Name: to}, move.Options{Dir: t.TempDir(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)})
			close(stop)
			must(t, errors.Join(err, <-ended))
			l = sessionlog.New(target)
			want := uint64(1)
			for _, e := range read(t, l, r, 1, session.RequestEntry, 0, 0) {
				if e.First != want {
					t.Fatalf("entry %d stands at the place of %d", e.First, want)
				}
				want += uint64(e.Count)
			}
			clients, err := l.Clients(t.Context(), r.Number)
			if want != next || err != nil || len(clients) != 1 || clients[0].Requests != next-1 {
				t.Errorf("the last request is %d of %d, the clients are %+v, %v", want-1, next-1, clients, err)
			}
			if epoch, err := l.TakeOver(t.Context(), r.Number); err != nil || epoch != r.Epoch+1 {
				t.Errorf("the epoch is %d after %d, %v", epoch, r.Epoch, err)
			}
			must(t, db.Close())
		})
	}
}

// The copy of a backup of PostgreSQL is made of SQLite files.
func TestAnExportHasTheSessions(t *testing.T) {
	from, to := storetest.Open(t), storetest.OpenAt(t, t.TempDir())
	l := sessionlog.New(from)
	r := opened(t, l)
	put(t, l, r, group(r, 1, session.RequestEntry, 1, 10), group(r, 2, session.ResponseEntry, 1, 10))
	for range 2 { // the second replaces the first
		must(t, move.ExportSessions(t.Context(), from, to))
	}
	l = sessionlog.New(to)
	if a, b := firsts(read(t, l, r, 1, session.RequestEntry, 0, 0)), firsts(read(t, l, r, 2, session.ResponseEntry, 0, 0)); a != "1" || b != "1" {
		t.Errorf("exported are %q and %q", a, b)
	}
	if next := opened(t, l); next.Number != r.Number+1 {
		t.Errorf("session %d follows %d", next.Number, r.Number)
	}
}
