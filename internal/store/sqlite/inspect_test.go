package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare/internal/store"
)

// problems returns what CheckStructure reports of a file.
func problems(t *testing.T, path string) (list []string) {
	t.Helper()
	if err := CheckStructure(t.Context(), path, func(text string) { list = append(list, text) }); err != nil {
		list = append(list, err.Error())
	}
	return list
}

// flipBit flips a bit of a file.
func flipBit(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 8
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFlippedBitOfTheLogIsFound(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := db.Sessions().Write(t.Context(), func(in store.Session) error {
			return in.Run("fill_session_numbers", int64(1), int64(5))
		})
		if err == nil {
			err = db.Sessions().Write(t.Context(), func(in store.Session) error { return in.Run("clear_session_numbers") })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A copy while the log is there, as after a kill.
	copied := filepath.Join(t.TempDir(), sessionsFile)
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, sessionsFile+end))
		if err == nil {
			err = os.WriteFile(copied+end, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(copied + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if list := problems(t, copied); len(list) > 0 {
		t.Fatalf("before the flips: %q", list)
	}
	const frame = frameHeader + 4096
	frames := (len(log) - logHeader) / frame
	for _, at := range []int{9, 12, 30, logHeader + 2, logHeader + frameHeader + 100, logHeader + (frames-1)*frame + 17, logHeader + (frames-1)*frame + 3000} {
		flipBit(t, copied+"-wal", at)
		if list := problems(t, copied); len(list) == 0 || !strings.Contains(list[0], "write-ahead log") {
			t.Errorf("the flip of byte %d is reported as %q", at, list)
		}
		if err := os.WriteFile(copied+"-wal", log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADamagedIndexIsFound(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, store.Relaxed)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, controlFile)
	if list := problems(t, path); len(list) > 0 {
		t.Fatalf("before the damage: %q", list)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	var root, size int64
	for query, to := range map[string]*int64{"SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = 'meta'": &root, "PRAGMA page_size": &size} {
		if *to, err = sqlitex.ResultInt64(conn.Prep(query)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	flipBit(t, path, int((root-1)*size)+4) // the number of rows of a page
	if list := problems(t, path); len(list) == 0 {
		t.Error("the damaged page is not reported")
	}
}
