package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestInspectionReadsTheDatabaseAndLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	look := func() (numbers []int64, err error) {
		err = Peek(t.Context(), dir, func(s store.Session) error {
			return s.Each("filters", func(r store.Row) error {
				numbers = append(numbers, r.Int64(0))
				return nil
			})
		})
		return numbers, err
	}
	if _, err := look(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into an empty directory: %v", err)
	}
	db := openDB(t, dir)
	if err := db.Control().Write(t.Context(), func(s store.Session) error { return s.Run("filters_insert", int64(7), "a > b") }); err != nil {
		t.Fatal(err)
	}
	if numbers, err := look(); err != nil || len(numbers) != 1 {
		t.Errorf("beside a server: %v, %v", numbers, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, controlFile))
	if err != nil {
		t.Fatal(err)
	}
	if numbers, err := look(); err != nil || len(numbers) != 1 || numbers[0] != 7 {
		t.Errorf("with no server: %v, %v", numbers, err)
	}
	err = Peek(t.Context(), dir, func(s store.Session) error { return s.Run("filters_insert", int64(8), "") })
	after, readErr := os.ReadFile(filepath.Join(dir, controlFile))
	if err == nil || readErr != nil || string(after) != string(before) {
		t.Errorf("it could be written: %v, %v", err, readErr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 { // and the sessions, the mailboxes, and the folder of the days
		t.Errorf("left are %v, %v", files, err)
	}
}
