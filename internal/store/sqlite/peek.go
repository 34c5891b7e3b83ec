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

// Peek reads the control part of a data directory and changes nothing: the
// files may be a running server's, and those of an older version are not brought
// up to date.
func Peek(ctx context.Context, dir string, fn func(store.Session) error) (err error) {
	name, err := peekName(filepath.Join(dir, controlFile))
	if err != nil { // there is none, or it is not ours to read
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

// peekName is the URI under which a look leaves nothing behind. Where there is no
// write-ahead log nobody has the file open, and SQLite is told that nobody will:
// else it would make one, in the name of whoever looks.
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
