package postgres

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// first are the migrations that make the schema: there is no version before
// them. When one comes behind the last, the statements that ran on the schema
// until then are kept here, and are run on all that follow:
//
//	mkdir testdata/statements/00004
//	git show v0.2.0:./control/queries.sql > testdata/statements/00004/control.sql
//	git show v0.2.0:./day/queries.sql > testdata/statements/00004/day.sql
//	git show v0.2.0:./sessions/queries.sql > testdata/statements/00004/sessions.sql
//	git show v0.2.0:./mailboxes/queries.sql > testdata/statements/00004/mailboxes.sql
const first = 4

// withSessions and withMailboxes are the migrations that make the tables of the sessions and of the mailboxes.
const (
	withSessions  = 20
	withMailboxes = 22
)

type migration struct{ name, script string }

// migrationsFrom are the migrations from a number on.
func migrationsFrom(t *testing.T, number int) (list []migration) {
	t.Helper()
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries[number-1:] {
		script, err := fs.ReadFile(migrationFiles, "migrations/"+entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, migration{entry.Name(), string(script)})
	}
	return list
}

func files(migrations []migration) fs.FS {
	all := fstest.MapFS{}
	for _, m := range migrations {
		all[m.name] = &fstest.MapFile{Data: []byte(m.script)}
	}
	return all
}

// refusals are the errors of statements, by part, on a database that got the
// migrations behind the first `seen` while a server was at work on it: on a day
// of before, and on one that it makes.
func refusals(t *testing.T, migrations []migration, seen int, statements map[string]store.Statements) (refused []string) {
	t.Helper()
	at := pgtest.Database(t)
	older, newer := connect(t, at), connect(t, at)
	if err := migrateWith(t.Context(), older, files(migrations[:seen])); err != nil {
		t.Fatal(err)
	}
	days := []fanfare.Day{aDay, later}
	if err := createDay(t.Context(), older, days[0]); err != nil {
		t.Fatal(err)
	}
	if err := migrateWith(t.Context(), newer, files(migrations)); err != nil {
		t.Fatal(err)
	}
	if err := createDay(t.Context(), older, days[1]); err != nil {
		return []string{"make a day: " + err.Error()}
	}
	for part, list := range statements {
		for name, s := range list {
			for _, day := range days {
				if err := try(t, older, fmt.Sprint(part, "_", name, "_", day), strings.ReplaceAll(s.Text, "yyyymmdd", day.String())); err != nil {
					refused = append(refused, fmt.Sprintf("%s: %s on %s: %v", part, name, day, err))
				}
			}
		}
	}
	return refused
}

// try executes a statement with some values and keeps nothing of it.
func try(t *testing.T, conn *pgx.Conn, name, text string) error {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	run, err := invocation(t.Context(), conn, name, text)
	if err == nil {
		_, err = tx.Exec(t.Context(), run)
	}
	return err
}

func TestStatementsOfOlderVersionsGoOnWorking(t *testing.T) {
	all := migrationsFrom(t, 1)
	for seen := first; seen < len(all); seen++ {
		statements := map[string]store.Statements{}
		parts := []string{"control", "day"}
		if seen >= withSessions {
			parts = append(parts, "sessions")
		}
		if seen >= withMailboxes {
			parts = append(parts, "mailboxes")
		}
		for _, part := range parts {
			file, err := os.ReadFile(filepath.Join("testdata", "statements", fmt.Sprintf("%05d", seen), part+".sql"))
			if err != nil {
				t.Fatalf("%s came, and the statements before it are not kept: %v", all[seen].name, err)
			}
			statements[part] = store.ParseStatements(string(file))
		}
		for _, refused := range refusals(t, all, seen, statements) {
			t.Errorf("with the statements of schema %d: %s", seen, refused)
		}
	}
}

func TestAMigrationThatStopsOlderServersIsSeen(t *testing.T) {
	statements := map[string]store.Statements{"control": store.ParseStatements(controlText), "day": store.ParseStatements(dayText)}
	for _, test := range []struct{ script, breaks string }{
		{"ALTER TABLE attempts ADD COLUMN worker text; ALTER TABLE held ADD COLUMN note text NOT NULL DEFAULT '';", ""},
		{"ALTER TABLE due DROP COLUMN lane;", "day: due_insert"},
		{"ALTER TABLE held ADD COLUMN n bigint NOT NULL;", "day: hold"},
		{"ALTER TABLE config ADD CONSTRAINT few CHECK (number > 1);", "control: config_put"},
		{"DROP FUNCTION make_day(date);", "make a day"},
	} {
		all := append(migrationsFrom(t, 1), migration{fmt.Sprintf("%05d_more.sql", len(migrationsFrom(t, 1))+1), "-- +goose Up\n" + test.script})
		found := strings.Join(refusals(t, all, len(all)-1, statements), "\n")
		if test.breaks == "" && found != "" || !strings.Contains(found, test.breaks) {
			t.Errorf("%s: %q, want %q", test.script, found, test.breaks)
		}
	}
}
