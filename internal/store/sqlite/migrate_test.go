package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// The number of a script is how many a file has seen: a gap or a double would
// run one twice, or never, in a file that exists.
func TestMigrationsAreNumberedWithoutGapOrDouble(t *testing.T) {
	for _, f := range []format{controlFormat, sessionFormat, mailboxFormat, dayFormat} {
		entries, err := fs.ReadDir(f.migrations, f.folder)
		if err != nil || len(entries) == 0 {
			t.Fatalf("%s: %d scripts, %v", f.folder, len(entries), err)
		}
		for i, entry := range entries {
			if want := fmt.Sprintf("%03d_", i+1); !strings.HasPrefix(entry.Name(), want) {
				t.Errorf("%s/%s stands at the place of %s", f.folder, entry.Name(), want)
			}
		}
	}
}

func TestAFileOfANewerProgramIsRefusedAndNotTouched(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []format{controlFormat, sessionFormat, mailboxFormat, dayFormat} {
		t.Run(format.folder, func(t *testing.T) {
			path := filepath.Join(dir, format.folder+".db")
			open := func() error {
				p, err := openPart(t.Context(), path, &format, store.Relaxed)
				if err == nil {
					err = p.close(errClosed)
				}
				return err
			}
			if err := open(); err != nil {
				t.Fatal(err)
			}
			set := func(pragma string) {
				t.Helper()
				conn, err := openWriter(path, store.Relaxed, &format)
				if err != nil {
					t.Fatal(err)
				}
				if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
					t.Fatal(err)
				}
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			}
			set("PRAGMA user_version = 999")
			err := open()
			if fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "newer") || !strings.Contains(err.Error(), format.folder+".db has schema version 999") {
				t.Fatalf("got %v", err)
			}
			scripts, err := format.scripts()
			if err != nil {
				t.Fatal(err)
			}
			set(fmt.Sprintf("PRAGMA user_version = %d", len(scripts)))
			if err := open(); err != nil {
				t.Errorf("it was changed while it was refused: %v", err)
			}
		})
	}
}

// A day that was kept before its ids were counted goes on behind them.
func TestIdsGoOnBehindThoseOfAnEarlierProgram(t *testing.T) {
	db := &DB{dir: t.TempDir()}
	const of = fanfare.Day(5)
	if err := os.MkdirAll(filepath.Dir(db.path(of)), 0o700); err != nil {
		t.Fatal(err)
	}
	conn, err := openWriter(db.path(of), store.Relaxed, &dayFormat)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := dayFormat.scripts()
	if err == nil {
		err = sqlitemigration.Migrate(t.Context(), conn, sqlitemigration.Schema{AppID: dayFormat.appID, Migrations: scripts[:1]})
	}
	if err == nil {
		err = sqlitex.ExecuteScript(conn, `
			INSERT INTO frozen VALUES (3, 77), (8, 78);
			INSERT INTO parked VALUES (2, 'batch', 77, 'why', 5, 1, 9, x'00');`, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	p := mustDay(t, openDB(t, db.dir), of)
	for statement, want := range map[string]int64{"frozen_next": 9, "held_next": 1, "parked_next": 3} {
		err := p.Write(t.Context(), func(s store.Session) error {
			return s.Each(statement, func(r store.Row) error {
				if got := r.Int64(0); got != want {
					t.Errorf("%s gives %d, want %d", statement, got, want)
				}
				return nil
			}, int64(1))
		})
		if err != nil {
			t.Error(err)
		}
	}
}
