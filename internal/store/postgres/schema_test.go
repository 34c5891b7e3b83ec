package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// connect opens a connection whose schema is fanfare.
func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "fanfare")
	u.RawQuery = query.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// migrated is a connection to a new database with the schema.
func migrated(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, pgtest.Database(t))
	if err := migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// value is the one value that a query returns.
func value[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestServersThatStartTogetherMigrateOnce(t *testing.T) {
	at := pgtest.Database(t)
	conns := make([]*pgx.Conn, 4)
	for i := range conns {
		conns[i] = connect(t, at)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(conns))
	for i, conn := range conns {
		wg.Go(func() { errs[i] = migrate(t.Context(), conn) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := value[int](t, conns[0], "SELECT count(*) FROM "+versionTable+" WHERE version_id > 0"); n != len(migrationsFrom(t, 1)) {
		t.Errorf("%d migrations were run, there are %d", n, len(migrationsFrom(t, 1)))
	}
	identity := value[int64](t, conns[0], "SELECT value FROM meta WHERE name = 'identity'")
	if err := migrate(t.Context(), conns[1]); err != nil {
		t.Fatal(err)
	}
	if again := value[int64](t, conns[1], "SELECT value FROM meta WHERE name = 'identity'"); again != identity {
		t.Errorf("the database was %x and is %x", identity, again)
	}
}

// The schemas of two services in one database have nothing to do with each other.
func TestASchemaIsThatOfTheSearchPath(t *testing.T) {
	at := pgtest.Database(t)
	for _, schema := range []string{"one", `An "odd" name`} {
		conn := connect(t, at)
		config := conn.Config()
		config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
		own, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close(context.Background())
		if err := migrate(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		if err := createDay(t.Context(), own, 20000); err != nil {
			t.Fatal(err)
		}
		if n := value[int](t, own, "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'attempts_20241004'", schema); n != 1 {
			t.Errorf("schema %s has no table of the day", schema)
		}
	}
}

func TestASchemaOfANewerProgramIsRefusedAndNotTouched(t *testing.T) {
	conn := migrated(t)
	execute(t, conn, "INSERT INTO migrations (version_id, is_applied) VALUES (999, true)")
	err := migrate(t.Context(), conn)
	if fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "newer") || !strings.Contains(err.Error(), "fanfare has schema version 999") {
		t.Fatalf("got %v", err)
	}
	execute(t, conn, "DELETE FROM migrations WHERE version_id = 999")
	if err := migrate(t.Context(), conn); err != nil {
		t.Errorf("it was changed while it was refused: %v", err)
	}
}

// The number of a migration is which of them a schema has seen: a gap or a double
// would run one twice, or never, in a database that exists.
func TestMigrationsAreNumberedWithoutGapOrDouble(t *testing.T) {
	for i, m := range migrationsFrom(t, 1) {
		if want := fmt.Sprintf("%05d_", i+1); !strings.HasPrefix(m.name, want) {
			t.Errorf("%s stands at the place of %s", m.name, want)
		}
	}
}

// An operator looks with psql, and \d+ should be all they need.
func TestEachTableAndViewHasADescription(t *testing.T) {
	conn := migrated(t)
	bare := collect[string](t, conn, `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'fanfare'::regnamespace AND relkind IN ('r', 'p', 'v') AND obj_description(oid, 'pg_class') IS NULL AND relname <> $1`, versionTable)
	if len(bare) > 0 {
		t.Errorf("without a comment: %q", bare)
	}
}
