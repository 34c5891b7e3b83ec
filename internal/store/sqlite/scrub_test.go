package sqlite

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare/internal/store"
)

// emptyFile is a file, the connection that writes to it, and what runs a query
// there.
func emptyFile(t *testing.T) (path string, conn *sqlite.Conn, run func(query string, args ...any)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "some.db")
	conn, err := openWriter(path, store.Relaxed, &controlFormat)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return path, conn, func(query string, args ...any) {
		t.Helper()
		if err := sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{Args: args}); err != nil {
			t.Fatal(err)
		}
	}
}

// tree is a file whose rows have moved a lot: they came in any order, grew, and
// went again, so that copies of them lie in the unused parts of pages.
func tree(t *testing.T, seed uint64) (path string, conn *sqlite.Conn, left map[int64]string) {
	t.Helper()
	path, conn, run := emptyFile(t)
	run("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
	run("CREATE TABLE words (name TEXT PRIMARY KEY) WITHOUT ROWID")
	random := rand.New(rand.NewPCG(seed, 1))
	left = map[int64]string{}
	for range 3000 {
		id := random.Int64N(1000)
		name := fmt.Sprintf("Person%04d@example.org %s", id, strings.Repeat("x", random.IntN(120)))
		switch {
		case random.IntN(4) == 0 && left[id] != "":
			run("DELETE FROM people WHERE id = ?", id)
			delete(left, id)
		default:
			run("INSERT OR REPLACE INTO people VALUES (?, ?)", id, name)
			run("INSERT OR REPLACE INTO words VALUES (?)", fmt.Sprintf("%x person%04d", random.Uint64(), id))
			left[id] = name
		}
	}
	return path, conn, left
}

func TestScrubbedDataAreInNoByteOfTheFile(t *testing.T) {
	hidden := 0
	for seed := range uint64(5) {
		path, conn, left := tree(t, seed)
		var names [][]byte
		err := securely(conn, func() error {
			return transact(conn, func(conn *sqlite.Conn) error {
				for id := range int64(1000) {
					if id%7 != 0 {
						continue
					}
					names = append(names, fmt.Appendf(nil, "person%04d", id))
					delete(left, id)
					for _, query := range []string{"DELETE FROM people WHERE id = ?1", "DELETE FROM words WHERE name LIKE '% person' || printf('%04d', ?1)"} {
						if err := sqlitex.Execute(conn, query, &sqlitex.ExecOptions{Args: []any{id}}); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := emptyLog(conn); err != nil {
			t.Fatal(err)
		}
		before, err := pagesWith(bytesOf(t, path), names)
		if err != nil {
			t.Fatal(err)
		}
		hidden += len(before)
		s := scrubber{func() (io.ReaderAt, error) { return bytesOf(t, path), nil }, func(fn func(*sqlite.Conn) error) error { return fn(conn) }}
		if err := s.scrub(names); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ToLower(text)
		for _, name := range names {
			if bytes.Contains(text, name) {
				t.Errorf("seed %d: %s is in the file", seed, name)
			}
		}
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			t.Errorf("seed %d: the log has %d bytes", seed, log.Size())
		}
		intact(t, conn, left)
	}
	if hidden == 0 {
		t.Error("no page had a copy of what was deleted: the test shows nothing")
	}
}

// intact checks the file, and that it has these people and no others.
func intact(t *testing.T, conn *sqlite.Conn, people map[int64]string) {
	t.Helper()
	found := 0
	err := sqlitex.ExecuteTransient(conn, "SELECT id, name FROM people", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		found++
		if people[stmt.ColumnInt64(0)] != stmt.ColumnText(1) {
			t.Errorf("%d is %q", stmt.ColumnInt64(0), stmt.ColumnText(1))
		}
		return nil
	}})
	if err != nil || found != len(people) {
		t.Errorf("%d people, %v", found, err)
	}
	err = sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		if stmt.ColumnText(0) != "ok" {
			t.Error(stmt.ColumnText(0))
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
}

// Names are found wherever they lie, also where two reads meet.
func TestPagesAreFoundByTheirContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	text := make([]byte, 3*searchBytes)
	text[16], text[17] = 0x10, 0 // 4096 bytes a page
	at := []int{5000, searchBytes - 9, searchBytes + 20, 2*searchBytes + 5, len(text) - 6}
	var want []int64
	for _, i := range at {
		copy(text[i:], "NaMe01")
		want = append(want, int64(i/4096+1))
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := pagesWith(bytesOf(t, path), [][]byte{[]byte("name01"), []byte("another that is longer")})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// FuzzClearUnused changes no byte outside of a page, even if the page is corrupt.
func FuzzClearUnused(f *testing.F) {
	f.Add([]byte{13, 0, 100, 0, 2, 1, 0, 0}, int64(2))
	f.Add([]byte{13, 0, 0, 255, 255, 0, 1, 0}, int64(1))
	f.Fuzz(func(t *testing.T, head []byte, number int64) {
		page := make([]byte, 512)
		copy(page, head)
		clearUnused(page, number)
	})
}

// A page that lists free pages has what it held before it became one behind its
// list.
func TestScrubbedDataAreNotInFreePages(t *testing.T) {
	path, conn, run := emptyFile(t)
	run("PRAGMA secure_delete=OFF")
	run("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
	for id := range 2000 {
		run("INSERT INTO people VALUES (?, ?)", id, strings.Repeat("Ada-Lovelace ", 20))
	}
	run("DELETE FROM people WHERE id > 0")
	run("UPDATE people SET name = 'Bob'")
	s := scrubber{func() (io.ReaderAt, error) { return bytesOf(t, path), nil }, func(fn func(*sqlite.Conn) error) error { return fn(conn) }}
	if err := s.scrub([][]byte{[]byte("ada-lovelace")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("Ada-Lovelace")); n > 0 {
		t.Errorf("the name is in the file %d times", n)
	}
	intact(t, conn, map[int64]string{0: "Bob"})
}

// bytesOf opens a file for as long as the test runs.
func bytesOf(t testing.TB, path string) io.ReaderAt {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
