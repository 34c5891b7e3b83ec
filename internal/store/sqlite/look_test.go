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

	"fanfare.dev/fanfare/internal/store"
)

// found looks at a directory and returns the files by name.
func found(t *testing.T, dir string) map[string]File {
	t.Helper()
	list, err := Look(context.WithoutCancel(t.Context()), dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]File{}
	for _, f := range list {
		files[f.Name] = f
	}
	return files
}

func TestEachDatabaseFileIsExamined(t *testing.T) {
	dir := t.TempDir()
	if list := found(t, dir); len(list) != 0 {
		t.Errorf("an empty directory has %v", list)
	}
	names := []string{"control.db", "deliveries/deliveries-20261120.db", "mailboxes.db", "sessions.db"}
	healthy := func(when string) {
		t.Helper()
		list := found(t, dir)
		var got []string
		for name, f := range list {
			got = append(got, name)
			if f.Seen != f.Known || f.Seen == 0 || f.Unreadable != nil || !f.Private || f.Bytes == 0 {
				t.Errorf("%s, %s is %+v", when, name, f)
			}
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("%s, the files are %v, want %v", when, got, names)
		}
	}
	db := openDB(t, dir)
	if _, err := db.Day(t.Context(), 20777, true); err != nil {
		t.Fatal(err)
	}
	if err := db.Mailboxes().Write(t.Context(), func(s store.Session) error { return s.Run("fill_mailbox_numbers", "content", int64(1)) }); err != nil {
		t.Fatal(err)
	}
	healthy("beside a server")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	healthy("without a server")
	for _, name := range names {
		if left, err := filepath.Glob(filepath.Join(dir, name) + "-*"); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

func TestAFileWithAProblemIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := openDB(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	conn, err := sqlite.OpenConn(path("control.db"), sqlite.OpenReadWrite)
	if err == nil {
		err = errors.Join(sqlitex.ExecuteTransient(conn, "PRAGMA user_version = 999", nil), conn.Close())
	}
	if err == nil { // a file of another kind
		err = os.Rename(path("sessions.db"), path("mailboxes.db"))
	}
	if err == nil {
		err = os.WriteFile(path("sessions.db"), []byte(strings.Repeat("no database", 1000)), 0o600)
	}
	if err == nil {
		err = os.Chmod(path("sessions.db"), 0o604)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := found(t, dir)
	if f := list["control.db"]; f.Seen != 999 || f.Known >= 999 || f.Unreadable != nil {
		t.Errorf("of a newer program: %+v", f)
	}
	if f := list["mailboxes.db"]; f.Unreadable == nil || !strings.Contains(f.Unreadable.Error(), "for mailboxes") {
		t.Errorf("of another kind: %+v", f)
	}
	if f := list["sessions.db"]; f.Unreadable == nil || f.Private {
		t.Errorf("damaged, and readable for all: %+v", f)
	}
	if err := os.WriteFile(path("sessions.db"), nil, 0o600); err != nil { // as a killed server can leave it
		t.Fatal(err)
	}
	if f := found(t, dir)["sessions.db"]; f.Unreadable != nil || f.Seen != 0 {
		t.Errorf("empty: %+v", f)
	}
}
