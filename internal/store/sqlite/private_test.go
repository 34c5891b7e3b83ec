package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

func TestDatabaseFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // as who installs it may have made it
		t.Fatal(err)
	}
	modes := func(what string, want os.FileMode) {
		t.Helper()
		db, err := Open(t.Context(), dir, store.Relaxed)
		if err != nil {
			t.Fatal(err)
		}
		day, err := db.Day(t.Context(), fanfare.Day(20_000), true)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []store.Part{db.Control(), db.Sessions(), db.Mailboxes(), day} {
			if err := part.Write(t.Context(), func(store.Session) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, pattern := range []string{"control.db*", "sessions.db*", "mailboxes.db*", "deliveries/*"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) < 2 {
				t.Fatalf("%s: %v, %v", pattern, files, err)
			}
			for _, file := range files {
				if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s, %s has mode %v, want %v (%v)", what, file, info.Mode().Perm(), want, err)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	modes("new", 0o600)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(dir, "control.db"), filepath.Join(dir, "sessions.db"), filepath.Join(dir, "mailboxes.db")) {
		if err := os.Chmod(file, 0o644); err != nil { // as versions before had them
			t.Fatal(err)
		}
	}
	modes("of before", 0o640)
}
