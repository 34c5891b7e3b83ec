package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// count adds one to a counter, which is no idempotent statement.
func count(s store.Session) error { return s.Run("parked_next", int64(1)) }

// counted reads the counter by a transaction that changes nothing.
func counted(t *testing.T, part store.Part) (value int64) {
	t.Helper()
	err := part.Write(t.Context(), func(s store.Session) error {
		return s.Each("parked_next", func(r store.Row) error {
			value = r.Int64(0)
			return nil
		}, int64(0))
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// through opens a database by way of a cutter, and a day in it.
func through(t *testing.T, options Options) (*cutter, *DB, store.Part) {
	t.Helper()
	cut := newCutter(t, pgtest.Database(t))
	options.Durability = store.Relaxed
	db := open(t, cut.url, options)
	part, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	return cut, db, part
}

func TestATransactionIsKeptOnceWhereverTheConnectionIsCut(t *testing.T) {
	for name, of := range map[string]direction{"to the server": toServer, "from the server": fromServer} {
		t.Run(name, func(t *testing.T) {
			cut, _, part := through(t, Options{})
			want := counted(t, part)
			for at := 0; ; at += 3 {
				cut.after(of, at)
				if err := part.Write(t.Context(), count); err != nil {
					t.Fatalf("cut after %d bytes: %v", at, err)
				}
				made := cut.disarm()
				want++
				if got := counted(t, part); got != want {
					t.Fatalf("cut after %d bytes: counted %d, want %d", at, got, want)
				}
				if !made {
					t.Logf("%d cuts", cut.cuts)
					return
				}
			}
		})
	}
}

// A report reads for minutes; who waits for the answer to a COMMIT does not wait
// for that.
func TestTheResultOfALostCommitIsFoundDuringReads(t *testing.T) {
	cut, db, part := through(t, Options{MaxConnections: 8})
	if err := record(part, 1, 0, 1); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var reading sync.WaitGroup
	defer reading.Wait()
	defer close(ended)
	begun := make(chan struct{})
	readers := int(db.reading.Config().MaxConns)
	for range readers {
		reading.Go(func() {
			err := part.Read(t.Context(), func(s store.Session) error {
				return s.Each("latest", func(store.Row) error {
					begun <- struct{}{}
					<-ended
					return nil
				}, int64(1), int64(0), int64(9))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range readers {
		<-begun
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lost, kept := db.Stats().Losses, int64(0)
	for at, made := 0, true; made; at += 10 {
		cut.after(fromServer, at)
		if err := part.Write(limited, count); err != nil {
			t.Fatalf("cut after %d bytes: %v", at, err)
		}
		made = cut.disarm()
		kept++
	}
	if db.Stats().Losses == lost {
		t.Error("no connection was lost")
	}
	t.Logf("%d commits, %d connections lost, %d readers", kept, db.Stats().Losses-lost, readers)
}

// TestOutcomesAreKeptOnceWhereverTheConnectionIsCut has groups run again without
// asking what became of them: those that were kept are met as rows that are there.
func TestOutcomesAreKeptOnceWhereverTheConnectionIsCut(t *testing.T) {
	cut, _, part := through(t, Options{})
	const rows = 3
	if err := record(part, 1, 0, rows); err != nil { // what is prepared once is not cut
		t.Fatal(err)
	}
	met := 0
	for at, from, made := 0, int64(rows), true; made; at, from = at+3, from+rows {
		cut.after(fromServer, at)
		runs := 0
		err := part.Write(t.Context(), func(s store.Session) error {
			runs++
			return s.Insert("attempts_insert", rows, bindAttempts(1, from))
		})
		made = cut.disarm()
		if found := positions(t, part, 1); err != nil || len(found) != int(from)+rows {
			t.Fatalf("cut after %d bytes: there are %d rows, want %d (%v)", at, len(found), int(from)+rows, err)
		}
		if runs > 2 {
			met++
		}
	}
	if met == 0 {
		t.Error("no group was kept whose answer was lost")
	}
	t.Logf("%d cuts, %d groups were kept before", cut.cuts, met)
}

func TestTransactionsAreKeptOnceWhileConnectionsAreCutAtRandom(t *testing.T) {
	cut, db, part := through(t, Options{})
	const writers, each = 4, 40
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				cut.after(direction(rand.N(2) == 0), rand.N(700))
				if err := part.Write(t.Context(), count); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	cut.disarm()
	if got := counted(t, part); got != writers*each {
		t.Errorf("counted %d, want %d, with %d cuts", got, writers*each, cut.cuts)
	}
	if cut.cuts == 0 || db.Stats().Losses == 0 {
		t.Error("nothing was cut")
	}
	t.Logf("%d cuts, %+v", cut.cuts, db.Stats())
}

func TestAServerThatWasReplacedKeepsNothing(t *testing.T) {
	at := pgtest.Database(t)
	cut := newCutter(t, at)
	first := open(t, cut.url, Options{})
	part, err := first.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	want := counted(t, part)
	cut.refuse(true)
	second := open(t, at, Options{})
	cut.refuse(false)

	for name, of := range map[string]struct {
		part store.Part
		fn   func(store.Session) error
	}{
		"control": {first.Control(), func(s store.Session) error { return s.Run("change_seq_set", int64(7)) }},
		"day":     {part, count},
	} {
		err := of.part.Write(t.Context(), of.fn)
		if fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), "another server has taken over") {
			t.Errorf("%s: got %v", name, err)
		}
		if errors.Is(err, store.ErrAway) {
			t.Errorf("%s: it would be tried again for ever: %v", name, err)
		}
	}
	// Messages that were sent are recorded.
	if err := record(part, 1, 0, 3); err != nil {
		t.Error(err)
	}
	part, err = second.Day(t.Context(), today, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := counted(t, part); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
	if err := second.Control().Write(t.Context(), func(s store.Session) error { return s.Run("change_seq_set", int64(8)) }); err != nil {
		t.Error(err)
	}
}

// A standby that was promoted may have less than was kept.
func TestATokenThatAFailoverLostStopsNobody(t *testing.T) {
	db, part := opened(t)
	want := counted(t, part)
	if err := db.admin(t.Context(), 0, func(ctx context.Context, a *admin) error {
		_, err := a.conn.Exec(ctx, "UPDATE writers SET token = -1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := part.Write(t.Context(), count); err != nil {
			t.Fatal(err)
		}
		want++
	}
	if got := counted(t, part); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

func TestALostDatabaseIsToldOnceAndOnceWhenItIsBack(t *testing.T) {
	var log bytes.Buffer
	cut, db, part := through(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), RetryFor: 1})
	want := counted(t, part)
	cut.refuse(true)
	for range 3 {
		err := part.Write(t.Context(), count)
		if fanfare.CodeOf(err) != fanfare.Unavailable || !errors.Is(err, store.ErrAway) {
			t.Errorf("write: got %v", err)
		}
		err = part.Read(t.Context(), func(s store.Session) error {
			return s.Each("due_next", func(store.Row) error { return nil })
		})
		if fanfare.CodeOf(err) != fanfare.Unavailable || !errors.Is(err, store.ErrAway) {
			t.Errorf("read: got %v", err)
		}
	}
	if !db.Stats().Away {
		t.Error("the counters do not show it")
	}
	cut.refuse(false)
	if got := counted(t, part); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if lost, back := strings.Count(log.String(), "the database was lost"), strings.Count(log.String(), "the database is available again"); lost != 1 || back != 1 {
		t.Errorf("told %d times that it was lost, %d that it is back:\n%s", lost, back, &log)
	}
}

// A call that began in an outage may fail after its end, for example a refused dial.
func TestALateErrorBeginsNoNewOutage(t *testing.T) {
	var log bytes.Buffer
	cut, db, part := through(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), RetryFor: 1})
	cut.refuse(true)
	if err := part.Write(t.Context(), count); !errors.Is(err, store.ErrAway) {
		t.Errorf("got %v", err)
	}
	cut.refuse(false)
	eventually(t, "the database is available again", func() bool { return !db.Stats().Away })
	db.lost(errors.New("failed to connect:\n\tone:5432: dial error"))
	eventually(t, "it was looked whether it is", func() bool { return !db.doubted.Load() })
	if db.Stats().Away {
		t.Error("it is away again")
	}
	cut.refuse(true)
	db.lost(errors.New("failed to connect:\n\tone:5432: dial error"))
	eventually(t, "it is away again", func() bool { return db.Stats().Away })
	cut.refuse(false)
	eventually(t, "the database is back again", func() bool { return !db.Stats().Away })
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if lost := strings.Count(log.String(), "the database was lost"); lost != 2 || strings.Contains(log.String(), `\n`) {
		t.Errorf("told %d times that it was lost:\n%s", lost, &log)
	}
}

// A moment that was found without rows is a moment: who loses it must not be
// given the rest of a later one.
func TestASnapshotThatIsLostIsNotMixedWithAnother(t *testing.T) {
	cut, _, part := through(t, Options{})
	seen := 0
	err := part.Snapshot(t.Context(), func(s store.Session) error {
		look := func() error {
			return s.Each("latest", func(store.Row) error { seen++; return nil }, int64(1), int64(0), int64(9))
		}
		if err := look(); err != nil || seen != 0 {
			t.Fatalf("%d rows (%v)", seen, err)
		}
		cut.cut()
		if err := record(part, 1, 0, 3); err != nil {
			t.Fatal(err)
		}
		return look()
	})
	if err == nil || seen != 0 {
		t.Errorf("the moment had no rows, and then %d (%v)", seen, err)
	}
}

// A caller that cancels, or that times out while others use all connections, is no reason to
// drop working connections.
func TestACancelledCallBeginsNoOutage(t *testing.T) {
	db := open(t, pgtest.Database(t), Options{MaxConnections: leastConnections, Durability: store.Relaxed})
	err := db.Control().Write(t.Context(), func(store.Session) error { // has the one connection
		late, cancel := context.WithTimeout(t.Context(), 1)
		defer cancel()
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for _, ctx := range []context.Context{late, gone} {
			if err := db.Control().Write(ctx, count); !errors.Is(err, ctx.Err()) {
				t.Errorf("write: got %v, want %v", err, ctx.Err())
			}
			if _, err := db.Day(ctx, today, true); !errors.Is(err, ctx.Err()) {
				t.Errorf("day: got %v, want %v", err, ctx.Err())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if of := db.Stats(); of.Losses != 0 || of.Away {
		t.Errorf("%+v", of)
	}
}

func TestTheStandbyAnswersReadsThatMayBeLate(t *testing.T) {
	at := pgtest.Database(t)
	standby := newCutter(t, at)
	db := open(t, at, Options{ReadURL: standby.url})
	if _, err := db.Day(t.Context(), today, true); err != nil {
		t.Fatal(err)
	}
	part, err := db.Late().Day(t.Context(), today, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context, func(store.Session) error) error{"Read": part.Read, "Snapshot": part.Snapshot} {
		for _, away := range []bool{false, true, false} {
			standby.refuse(away)
			before := standby.answered.Load()
			var n int
			err := run(t.Context(), func(s store.Session) error {
				n = 0
				return s.Each("latest", func(store.Row) error { n++; return nil }, int64(1), int64(0), int64(9))
			})
			if err != nil || n != 3 {
				t.Errorf("%s, standby away %v: %d rows, %v", name, away, n, err)
			}
			if asked := standby.answered.Load() > before; asked == away {
				t.Errorf("%s, standby away %v: it answered is %v", name, away, asked)
			}
		}
	}
	standby.refuse(true)
	if got := positions(t, part, 1); len(got) != 3 {
		t.Errorf("%v", got)
	}
}
