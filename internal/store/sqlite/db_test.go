package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

func openDB(tb testing.TB, dir string) *DB {
	tb.Helper()
	db, err := Open(context.Background(), dir, store.Relaxed)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func mustDay(tb testing.TB, db *DB, of fanfare.Day) *part {
	tb.Helper()
	p, err := db.Day(tb.Context(), of, true)
	if err != nil {
		tb.Fatal(err)
	}
	return p.(*part)
}

// set runs a pragma on the connection that writes.
func set(tb testing.TB, p *part, pragma string) {
	tb.Helper()
	if err := p.alone(func(conn *sqlite.Conn) error { return sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil) }); err != nil {
		tb.Fatal(err)
	}
}

// manifests inserts rows of so many bytes from an id on.
func manifests(from, n, sizeBytes int) func(store.Session) error {
	return func(s store.Session) error {
		return s.Insert("manifest_insert", n, func(i int, to store.Values) {
			to.Int64(int64(from + i))
			to.Bytes(make([]byte, sizeBytes))
		})
	}
}

// idsIn are the ids of those rows.
func idsIn(tb testing.TB, p store.Part) (ids []int64) {
	tb.Helper()
	err := p.Read(tb.Context(), func(s store.Session) error {
		return s.Each("manifests_of_event", func(r store.Row) error {
			ids = append(ids, r.Int64(0))
			return nil
		}, int64(0), int64(1_000_000))
	})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestTheFilesLieInTheDataDirectoryAndDaysComeWhenTheyAreAskedFor(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "control.db")); err != nil {
		t.Error(err)
	}
	if days, err := db.Days(t.Context()); err != nil || len(days) > 0 {
		t.Errorf("an empty directory has the days %v (%v)", days, err)
	}
	if _, err := db.Day(t.Context(), 5, false); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("a day that is not there: %v", err)
	}
	for _, of := range []fanfare.Day{6, 20777, 5} {
		mustDay(t, db, of)
	}
	if days, err := db.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{20777, 6, 5}) {
		t.Errorf("days %v (%v)", days, err)
	}
	for _, of := range []fanfare.Day{5, 5, 6} { // the second time it does nothing
		if err := db.RemoveDay(t.Context(), of); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "deliveries", "*.db*"))
	if err != nil || slices.ContainsFunc(files, func(file string) bool {
		return !strings.HasPrefix(file, filepath.Join(dir, "deliveries", "deliveries-"+fanfare.Day(20777).String()+".db"))
	}) || len(files) == 0 {
		t.Errorf("the files of the days are %v (%v)", files, err)
	}
}

func TestAFailedWriteIsRolledBackAndTheNextTransactionWorks(t *testing.T) {
	for name, c := range map[string]struct {
		spoil, mend string
		code        fanfare.Code
	}{
		"a full disk":                    {"max_page_count=60", "max_page_count=1000000", fanfare.DiskFull},
		"a file that may not be written": {"query_only=ON", "query_only=OFF", fanfare.Unavailable},
	} {
		for kind, run := range map[string]func(*part, func(store.Session) error) error{
			"write": func(p *part, fn func(store.Session) error) error { return p.Write(t.Context(), fn) },
			"erase": func(p *part, fn func(store.Session) error) error { return p.Erase(t.Context(), fn) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				p := mustDay(t, openDB(t, t.TempDir()), 5)
				if err := p.Write(t.Context(), manifests(1, 1, 0)); err != nil {
					t.Fatal(err)
				}
				set(t, p, c.spoil)
				for range 3 {
					if err := run(p, manifests(2, 100, 5000)); fanfare.CodeOf(err) != c.code {
						t.Fatalf("got %v", err)
					}
					if got := idsIn(t, p); !slices.Equal(got, []int64{1}) {
						t.Fatalf("after the error there are %v", got)
					}
				}
				set(t, p, c.mend)
				if err := p.Write(t.Context(), manifests(2, 1, 0)); err != nil {
					t.Fatal(err)
				}
				if got := idsIn(t, p); !slices.Equal(got, []int64{1, 2}) {
					t.Errorf("kept are %v", got)
				}
			})
		}
	}
}

func TestTheLogOfADayIsWrittenOverInsteadOfGrowing(t *testing.T) {
	const most, size = 10 << 20, 100_000
	p := mustDay(t, openDB(t, t.TempDir()), 5)
	for i := range 3 * most / size {
		if err := p.Write(t.Context(), manifests(i, 1, size)); err != nil {
			t.Fatal(err)
		}
	}
	if log, err := os.Stat(p.path + "-wal"); err != nil || log.Size() > most {
		t.Errorf("the log has %d bytes, want at most %d (%v)", log.Size(), most, err)
	}
}

func TestAFileOfAnotherProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	conn, err := openWriter(filepath.Join(dir, "control.db"), store.Relaxed, &controlFormat)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteTransient(conn, "CREATE TABLE theirs (a)", nil), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if db, err := Open(t.Context(), dir, store.Relaxed); err == nil {
		t.Error(errors.Join(errors.New("it was opened"), db.Close()))
	}
}
