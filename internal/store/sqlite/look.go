package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A File is a database file of a data directory as Look found it.
type File struct {
	Name         string // below the data directory
	Bytes        int64  // with its write-ahead log
	Private      bool   // other users cannot read it
	Seen, Known  int    // schema version of the file, and the newest one of this program
	Unreadable   error  // nil: it could be read
	NotPermitted bool   // this user cannot read it
}

// Look examines the database files of a data directory without changing anything. A server may use them at the same time. A
// file that does not exist is left out.
func Look(ctx context.Context, dir string) ([]File, error) {
	days, err := filepath.Glob(filepath.Join(dir, daysFolder, dayPrefix+"*"+daySuffix))
	if err != nil {
		return nil, err
	}
	var files []File
	for _, path := range append([]string{filepath.Join(dir, controlFile), filepath.Join(dir, sessionsFile), filepath.Join(dir, mailboxesFile)}, days...) {
		format := &dayFormat
		switch filepath.Base(path) {
		case controlFile:
			format = &controlFormat
		case sessionsFile:
			format = &sessionFormat
		case mailboxesFile:
			format = &mailboxFormat
		}
		f, err := lookAt(ctx, path, format)
		if errors.Is(err, fs.ErrNotExist) { // the file of a day may have been removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		f.Name = strings.TrimPrefix(path, filepath.Clean(dir)+string(filepath.Separator))
		files = append(files, f)
	}
	return files, nil
}

// lookAt returns an error only if the file does not exist, or if this program is wrong.
func lookAt(ctx context.Context, path string, format *format) (f File, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err != nil {
		f.Unreadable, f.NotPermitted = err, errors.Is(err, fs.ErrPermission)
		return f, nil
	}
	scripts, err := format.scripts()
	if err != nil {
		return f, err
	}
	f.Known, f.Bytes, f.Private = len(scripts), info.Size(), info.Mode().Perm()&others == 0
	if log, err := os.Stat(path + "-wal"); err == nil {
		f.Bytes += log.Size()
	}
	file, err := os.Open(path)
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		f.Seen, err = seen(ctx, path, format)
	}
	if err != nil {
		if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) {
			return f, gone
		}
	}
	f.Unreadable, f.NotPermitted = err, errors.Is(err, fs.ErrPermission)
	return f, nil
}

// seen returns the schema version of a file. It reads the schema, but not the rows.
func seen(ctx context.Context, path string, format *format) (version int, err error) {
	name, err := peekName(path)
	if err != nil {
		return 0, err
	}
	conn, err := open(name, sqlite.OpenReadOnly|sqlite.OpenURI, []string{"PRAGMA query_only=ON"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	var id, tables int64
	number := func(query string, to *int64) {
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error { *to = stmt.ColumnInt64(0); return nil }})
		}
	}
	var seen int64
	number("PRAGMA user_version", &seen)
	number("PRAGMA application_id", &id)
	number("SELECT count(*) FROM sqlite_schema", &tables)
	if err == nil && id != int64(format.appID) && (id != 0 || tables > 0) { // a server that was killed can leave a file without content
		err = fmt.Errorf("it is not a database of Fanfare for %s (application_id %#x)", format.folder, id)
	}
	return int(seen), err
}
