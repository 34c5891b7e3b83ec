package postgres

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func TestInspectionReportsTheDatabaseAndChangesNothing(t *testing.T) {
	at := pgtest.Database(t)
	before, err := Look(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if before.SchemaSeen != 0 || !before.MayCreate || before.Holder != "" || before.Days != 0 {
		t.Errorf("an empty database: %+v", before)
	}
	if before.Number < 150000 || before.Version == "" || strings.Contains(before.Version, " ") || before.Encoding != "UTF8" || before.Standby ||
		before.MaxConnections < 10 || !before.Local || before.Schema != "fanfare" ||
		before.RoundTrip <= 0 || before.RoundTrip > lookTimeout || before.Ahead.Abs() > time.Minute {
		t.Errorf("%+v", before)
	}
	peek := func() error { return Peek(t.Context(), at, func(store.Session) error { return nil }) }
	if err := peek(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a peek into nothing: %v", err)
	}

	db := open(t, at, Options{ApplicationName: "fanfare one"})
	if _, err := db.Day(t.Context(), today, true); err != nil {
		t.Fatal(err)
	}
	after, err := Look(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if after.SchemaSeen == 0 || after.SchemaSeen != after.SchemaKnown || !after.MayChange || after.Days != 1 || after.Bytes == 0 ||
		!strings.HasPrefix(after.Holder, "fanfare one at 127.0.0.1, since ") || after.Own == 0 {
		t.Errorf("with a server at work: %+v", after)
	}
	if err := peek(); err != nil {
		t.Errorf("a peek beside the server: %v", err)
	}
	about, err := db.About(t.Context())
	if err != nil || about.Where != after.Where || about.Version != after.Version || len(about.Identity) < 8 {
		t.Errorf("%+v, %v", about, err)
	}
	if size, err := db.Size(t.Context()); err != nil || size != after.Bytes {
		t.Errorf("%d bytes and %d, %v", size, after.Bytes, err)
	}
}

func TestADatabaseThatIsReadOnlyByDefaultIsToldSo(t *testing.T) {
	at := pgtest.Database(t)
	if facts, err := Look(t.Context(), at); err != nil || facts.ReadOnly {
		t.Errorf("before: %+v, %v", facts, err)
	}
	conn := connect(t, at)
	execute(t, conn, "ALTER DATABASE "+conn.Config().Database+" SET default_transaction_read_only = on")
	if facts, err := Look(t.Context(), at); err != nil || !facts.ReadOnly {
		t.Errorf("after: %+v, %v", facts, err)
	}
	if _, err := Open(t.Context(), at, Options{RetryFor: time.Nanosecond}); err == nil || !strings.Contains(err.Error(), "the database is read-only") {
		t.Errorf("a server: %v", err)
	}
}

func TestTheIdentityOfADatabaseStaysAndIsItsOwn(t *testing.T) {
	identity := func(at string) string {
		db, err := Open(t.Context(), at, Options{})
		if err != nil {
			t.Fatal(err)
		}
		about, err := db.About(t.Context())
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return about.Identity
	}
	one, other := pgtest.Database(t), pgtest.Database(t)
	if first, again, theirs := identity(one), identity(one), identity(other); first != again || first == theirs {
		t.Errorf("%s, then %s; another: %s", first, again, theirs)
	}
}

func TestASchemaIsDroppedWithAllInItAndNothingBeside(t *testing.T) {
	at := pgtest.Database(t)
	beside, err := InSchema(at, "beside")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{at, beside} {
		db, err := Open(t.Context(), at, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Day(t.Context(), today, true); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := InSchema("mysql://ada:secret@db/fanfare", "beside"); fanfare.CodeOf(err) != fanfare.Invalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("a schema of another make: %v", err)
	}
	for range 2 {
		if err := Drop(t.Context(), beside); err != nil {
			t.Fatal(err)
		}
	}
	if gone, err := Look(t.Context(), beside); err != nil || gone.Schema != "beside" || gone.SchemaSeen != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
	if left, err := Look(t.Context(), at); err != nil || left.SchemaSeen == 0 || left.Days != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}

func TestSettingsAreToldByName(t *testing.T) {
	found, err := Settings(t.Context(), pgtest.Database(t), []string{"server_version", "shared_buffers", "no_such_setting"})
	if err != nil || len(found) != 2 || found["server_version"] == "" || !strings.HasSuffix(found["shared_buffers"], "B") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestADescriptionHasNoPassword(t *testing.T) {
	for at, want := range map[string]string{
		"postgres://ada:secret@db.example.org/fanfare":                                          "ada@db.example.org:5432/fanfare",
		"postgres://ada:secret@one:5433,two:5434/fanfare?target_session_attrs=read-write":       "ada@one:5433,two:5434/fanfare",
		"postgres:///fanfare?host=/run/postgresql&user=ada&password=secret":                     "ada@/run/postgresql:5432/fanfare",
		"postgres://ada:secret@db.example.org/fanfare?sslmode=prefer":                           "ada@db.example.org:5432/fanfare",
		"postgres://ada:secret@db.example.org:port/fanfare":                                     "database",
		"postgres://ada:secret@db.example.org/fanfare?search_path=secret2&sslmode=no-such-mode": "database",
	} {
		if got := Describe(at); got != want {
			t.Errorf("%s is described as %s", at, got)
		}
	}
}

func TestAnErrorIsOneLineAndNamesEachAddressOnce(t *testing.T) {
	_, err := Look(t.Context(), "postgres://ada:secret@127.0.0.1:1/fanfare?sslmode=prefer")
	if !errors.Is(err, store.ErrAway) || fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); strings.Contains(text, "\n") || strings.Count(text, "connection refused") != 1 || strings.Contains(text, "secret") || !strings.Contains(text, "127.0.0.1:1") {
		t.Errorf("it says %s", text)
	}
}

// lookFor looks until it counts the connections of others, or for a minute: PostgreSQL may still be ending one that was closed.
func lookFor(t *testing.T, at string, others int) *Facts {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; {
		found, err := Look(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if found.Used == others || time.Now().After(limit) {
			return found
		}
	}
}

// A server has up to db_connections; they are not those of somebody else.
func TestTheConnectionsOfTheServerAreNotThoseOfOthers(t *testing.T) {
	at := pgtest.Start(t, pgtest.Quick...).URL
	db := open(t, at, Options{ApplicationName: "fanfare one"})
	if _, err := db.Day(t.Context(), today, true); err != nil {
		t.Fatal(err)
	}
	own := 0
	look := func(others int) {
		t.Helper()
		found := lookFor(t, at, others)
		if found.Used != others || found.Own < 2 || own != 0 && found.Own != own {
			t.Errorf("the server has %d, others %d; want %d", found.Own, found.Used, others)
			return
		}
		own = found.Own
	}
	look(0)
	connect(t, at)
	connect(t, at)
	look(2)
}

func TestTheConnectionsOfNodesAreCountedOnce(t *testing.T) {
	at := pgtest.Start(t, pgtest.Quick...).URL
	const nodes = 3
	for range nodes {
		c, err := OpenCluster(t.Context(), at, Options{ApplicationName: "fanfare"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if found := lookFor(t, at, 0); found.Own != nodes || found.Used != 0 {
		t.Errorf("%d nodes have %d connections, others %d", nodes, found.Own, found.Used)
	}
}
