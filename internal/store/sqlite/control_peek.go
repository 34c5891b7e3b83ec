package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/registry"
)

// PeekConfig reads the configuration that is kept in control.db, services first,
// and changes nothing: the file may be a running server's, and one of an older
// version is not brought up to date.
func PeekConfig(ctx context.Context, path string) (records []registry.ConfigRecord, err error) {
	name, err := peekName(path)
	if err != nil {
		return nil, err
	}
	conn, err := open(name, sqlite.OpenReadOnly|sqlite.OpenURI, []string{"PRAGMA query_only=ON"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	err = all(conn, configQuery, func(stmt *sqlite.Stmt) error {
		records = append(records, configAt(stmt))
		return nil
	})
	return records, err
}

// peekName is the URI under which a look leaves nothing behind. Where there is no
// write-ahead log nobody has the file open, and SQLite is told that nobody will:
// else it would make one, in the name of whoever looks.
func peekName(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	name := url.URL{Scheme: "file", Path: abs}
	if _, err := os.Stat(abs + "-wal"); errors.Is(err, fs.ErrNotExist) {
		name.RawQuery = "immutable=1"
	}
	return name.String(), nil
}
