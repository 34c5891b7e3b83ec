package sqlite

import (
	"context"
	"fmt"
	"io"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A Snapshot is a file of this package as it was at one moment, to be copied while others read and write it. While it is
// open, the write-ahead log of the file only grows. Its schema is not brought up to date.
type Snapshot struct {
	conn     *sqlite.Conn
	path     string
	pages    int64
	pageSize int64
}

const snapshotCacheKiB = 256

// OpenSnapshot opens the file and fixes the moment.
func OpenSnapshot(path string) (*Snapshot, error) {
	conn, err := openReader(path, snapshotCacheKiB)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{conn: conn, path: path}
	err = step(conn, "BEGIN")
	if err == nil {
		s.pages, err = sqlitex.ResultInt64(conn.Prep("PRAGMA page_count")) // the first read fixes the moment
	}
	if err == nil {
		s.pageSize, err = sqlitex.ResultInt64(conn.Prep("PRAGMA page_size"))
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", path, joinClose(err, conn))
	}
	return s, nil
}

// Size returns the number of bytes that Copy writes.
func (s *Snapshot) Size() int64 { return s.pages * s.pageSize }

// Copy writes the file as it was at the moment, page by page. It blocks as long as w does.
func (s *Snapshot) Copy(ctx context.Context, w io.Writer) error {
	s.conn.SetInterrupt(ctx.Done())
	defer s.conn.SetInterrupt(nil)
	page := make([]byte, s.pageSize)
	copied := int64(0)
	err := sqlitex.ExecuteTransient(s.conn, "SELECT pgno, data FROM sqlite_dbpage", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		if stmt.ColumnInt64(0) != copied+1 || stmt.ColumnBytes(1, page) != len(page) {
			return fmt.Errorf("page %d cannot be read", copied+1)
		}
		copied++
		_, err := w.Write(page)
		return err
	}})
	if err == nil && copied != s.pages {
		err = fmt.Errorf("only %d of %d pages could be read", copied, s.pages)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", s.path, err)
	}
	return nil
}

// Close releases the moment.
func (s *Snapshot) Close() error { return s.conn.Close() }
