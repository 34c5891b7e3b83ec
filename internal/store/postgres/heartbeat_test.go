package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// frozen opens a database on a server of the test's own, which can be frozen, and a
// day in it.
func frozen(t *testing.T) (*pgtest.Server, *DB, store.Part) {
	t.Helper()
	server := pgtest.Start(t, pgtest.Quick...)
	db := open(t, server.URL, Options{})
	part, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	return server, db, part
}

func readLatest(ctx context.Context, part store.Part) error {
	return part.Read(ctx, func(s store.Session) error {
		return s.Each("latest", func(store.Row) error { return nil }, int64(1), int64(0), int64(9))
	})
}

func TestASilentDatabaseIsFoundWithinTwoSeconds(t *testing.T) {
	if worst := heartbeatEvery + silentLooks*silenceLook + answerLimit + silenceLook; worst > 1600*time.Millisecond {
		t.Errorf("it takes %v, and who shows it needs some time too", worst)
	}
}

// Nobody uses the database meanwhile, so no statement fails.
func TestADatabaseThatAcceptsConnectionsAndDoesNotAnswerIsAway(t *testing.T) {
	server, db, part := frozen(t)
	server.Freeze()
	begun := time.Now()
	eventually(t, "it is away", func() bool { return db.Stats().Away })
	t.Logf("found after %v", time.Since(begun))
	since, why := db.Away()
	if !errors.Is(why, errSilent) || since.Before(begun.Add(-time.Second)) {
		t.Errorf("away since %v, frozen at %v: %v", since, begun, why)
	}
	for name, call := range map[string]func() error{
		"read":  func() error { return readLatest(t.Context(), part) },
		"write": func() error { return part.Write(t.Context(), count) },
		"admin": func() error { return db.SyncAll(t.Context()) },
	} {
		if err := call(); !errors.Is(err, store.ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Thaw()
	eventually(t, "it is back", func() bool { return !db.Stats().Away })
	if err := errors.Join(readLatest(t.Context(), part), part.Write(t.Context(), count)); err != nil {
		t.Error(err)
	}
}

// A statement may take a minute; one that only reads does not wait that long for a
// server that is frozen.
func TestReadersGetAnErrorWhenTheDatabaseStopsAnswering(t *testing.T) {
	server, db, part := frozen(t)
	err := part.Read(t.Context(), func(s store.Session) error {
		each := func() error {
			return s.Each("latest", func(store.Row) error { return nil }, int64(1), int64(0), int64(9))
		}
		if err := each(); err != nil {
			t.Fatal(err)
		}
		server.Freeze()
		return each()
	})
	if !errors.Is(err, store.ErrAway) {
		t.Errorf("it was told %v", err)
	}
	server.Thaw()
	eventually(t, "it is back", func() bool { return !db.Stats().Away })
}

// The first process of PostgreSQL makes the others; those that are there work without
// it, and no new connection is answered.
func TestADatabaseThatDoesNotAnswerNewConnectionsIsAway(t *testing.T) {
	server, db, part := frozen(t)
	server.FreezeFirst()
	db.control.Reset() // as after some minutes without a change
	ended := make(chan error, 1)
	go func() {
		ended <- db.Control().Write(t.Context(), func(s store.Session) error { return s.Run("change_seq_set", int64(7)) })
	}()
	eventually(t, "it is away", func() bool { return db.Stats().Away })
	server.Thaw()
	eventually(t, "it is back", func() bool { return !db.Stats().Away })
	<-ended // it may have waited long enough, or not
	if err := readLatest(t.Context(), part); err != nil {
		t.Error(err)
	}
}

// Others hold all connections: that is an answer.
func TestADatabaseThatRefusesConnectionsIsNotSilent(t *testing.T) {
	cut := newCutter(t, pgtest.Database(t))
	db := open(t, cut.url, Options{})
	cut.refuse(true)
	if !db.answers() {
		t.Error("a connection that is refused was taken for one that is not answered")
	}
	cut.refuse(false)
}
