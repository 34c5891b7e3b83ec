package sqlite

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

// Closing a file releases all locks of the process on it, also those of SQLite. Another program
// that opened the database would then delete its log when it closes it.
func TestReadingTheFileKeepsTheLocksOfSQLite(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	locks := func() int {
		t.Helper()
		var stat syscall.Stat_t
		if err := syscall.Stat(db.control.path, &stat); err != nil {
			t.Fatal(err)
		}
		all, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(all), fmt.Sprintf(":%d ", stat.Ino))
	}
	before := locks()
	if before == 0 {
		t.Fatal("there are no locks to lose")
	}
	if err := db.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := db.Control().Scrub(t.Context(), [][]byte{[]byte("nobody")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := locks(); got != before {
		t.Errorf("%d locks are left of %d", got, before)
	}
}
