package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// Find lists the files of a directory, or the tables of a database, that contain one of the
// names, ignoring case.
func Find(tb pgtest.TB, place string, names ...string) (found []string) {
	tb.Helper()
	if strings.Contains(place, "://") {
		return pgtest.Find(tb, place, names...)
	}
	files := os.DirFS(place)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		var text []byte
		if err == nil && d.Type().IsRegular() {
			text, err = fs.ReadFile(files, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while it was looked at
		} else if err != nil {
			return err
		}
		text = bytes.ToLower(text)
		for _, name := range names {
			if at := bytes.Index(text, []byte(strings.ToLower(name))); at >= 0 {
				found = append(found, fmt.Sprintf("%s has %s at %d", filepath.Base(path), name, at))
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}
