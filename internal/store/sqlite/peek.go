package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// Peek reads the control part of a data directory without changing anything: a server may use the files, and files of an
// older version are not brought up to date.
func Peek(ctx context.Context, dir string, fn func(store.Session) error) (err error) {
	name, err := peekName(filepath.Join(dir, controlFile))
	if err != nil { // no file, or no permission to read it
		return err
	}
	conn, err := open(name, sqlite.OpenReadOnly|sqlite.OpenURI, []string{"PRAGMA query_only=ON"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	return fn(newSession(conn, &controlFormat))
}

// peekName returns the URI for reading a file without leaving anything behind. If there is no write-ahead log, no process
// has the file open, and the URI tells SQLite that the file does not change. Otherwise SQLite would create a log that
// belongs to the reading user.
func peekName(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(abs); err != nil {
		return "", err
	}
	name := url.URL{Scheme: "file", Path: abs}
	if _, err := os.Stat(abs + "-wal"); errors.Is(err, fs.ErrNotExist) {
		name.RawQuery = "immutable=1"
	}
	return name.String(), nil
}
