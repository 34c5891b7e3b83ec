package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
)

// The number of a script is how many a file has seen: a gap or a double would
// run one twice, or never, in a file that exists.
func TestMigrationsAreNumberedWithoutGapOrDouble(t *testing.T) {
	for folder, files := range map[string]embed.FS{"control": controlMigrations, "day": dayMigrations} {
		entries, err := fs.ReadDir(files, folder)
		if err != nil || len(entries) == 0 {
			t.Fatalf("%s: %d scripts, %v", folder, len(entries), err)
		}
		for i, entry := range entries {
			if want := fmt.Sprintf("%03d_", i+1); !strings.HasPrefix(entry.Name(), want) {
				t.Errorf("%s/%s stands at the place of %s", folder, entry.Name(), want)
			}
		}
	}
}

func TestAFileOfANewerProgramIsRefusedAndNotTouched(t *testing.T) {
	dir := t.TempDir()
	folders := map[string]embed.FS{"control": controlMigrations, "day": dayMigrations}
	for name, open := range map[string]func(path string) error{
		"control": func(path string) error {
			c, err := OpenControl(t.Context(), path, Relaxed)
			if err == nil {
				err = c.Close()
			}
			return err
		},
		"day": func(path string) error {
			d, err := openDay(t.Context(), path, 1, Relaxed)
			if err == nil {
				err = d.close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name+".db")
			if err := open(path); err != nil {
				t.Fatal(err)
			}
			set := func(pragma string) {
				t.Helper()
				conn, err := openWriter(path, Relaxed, 100)
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
			err := open(path)
			if fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "newer") || !strings.Contains(err.Error(), name+".db has schema 999") {
				t.Fatalf("got %v", err)
			}
			scripts, err := readMigrations(folders[name], name)
			if err != nil {
				t.Fatal(err)
			}
			set(fmt.Sprintf("PRAGMA user_version = %d", len(scripts)))
			if err := open(path); err != nil {
				t.Errorf("it was changed while it was refused: %v", err)
			}
		})
	}
}
