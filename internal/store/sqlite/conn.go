// Package sqlite stores the state of Fanfare in SQLite files in one directory: control.db for configuration, subscribers
// and subscriptions, sessions.db for sessions, mailboxes.db for mailboxes, and one file for the deliveries of each day
// (deliveries-20261120.db), so that an import blocks neither recording nor sessions nor mailboxes, and retention only
// deletes files.
//
// A commit is durable: in fsync durability every commit is synced (synchronous=FULL); in relaxed durability it is written
// to the operating system and survives a kill of the process, but not a loss of power. After a disk error the whole
// transaction is rolled back and the error is returned; the file remains usable.
package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// openWriter opens the only connection that writes to the file. It creates the file if necessary.
func openWriter(path string, durability store.Durability, format *format) (*sqlite.Conn, error) {
	synchronous := "FULL"
	if durability == store.Relaxed {
		synchronous = "NORMAL"
	}
	if failpoint.Fault("sqlite-without-sync") {
		synchronous = "OFF"
	}
	if err := keepPrivate(path); err != nil {
		return nil, err
	}
	return open(path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL, []string{
		"PRAGMA synchronous=" + synchronous,
		fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", format.logPages),
		fmt.Sprintf("PRAGMA cache_size=-%d", format.writerCacheKiB),
		"PRAGMA temp_store=MEMORY",
		"PRAGMA foreign_keys=OFF",
	})
}

// openReader opens a connection that only reads. Each statement sees all commits of the writer before it.
func openReader(path string, cacheKiB int) (*sqlite.Conn, error) {
	return open(path, sqlite.OpenReadWrite|sqlite.OpenWAL, []string{
		"PRAGMA query_only=ON",
		fmt.Sprintf("PRAGMA cache_size=-%d", cacheKiB),
		"PRAGMA temp_store=MEMORY",
	})
}

func open(path string, flags sqlite.OpenFlags, pragmas []string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	for _, pragma := range pragmas {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return nil, fmt.Errorf("open %s: %s: %w", path, pragma, joinClose(err, conn))
		}
	}
	return conn, nil
}

func joinClose(err error, conn *sqlite.Conn) error {
	if closeErr := conn.Close(); closeErr != nil {
		return fmt.Errorf("%w (and on close: %w)", err, closeErr)
	}
	return err
}

// step runs a statement without arguments and rows. The connection keeps it prepared.
func step(conn *sqlite.Conn, query string) error {
	stmt, err := conn.Prepare(query)
	if err != nil {
		return err
	}
	return execute(stmt)
}

// execute steps a statement that returns no rows.
func execute(stmt *sqlite.Stmt) error {
	return eachRow(stmt, func(*sqlite.Stmt) error { return nil })
}

// eachRow steps a statement until it ends or row returns an error.
func eachRow(stmt *sqlite.Stmt, row func(*sqlite.Stmt) error) (err error) {
	defer func() {
		if resetErr := stmt.Reset(); err == nil {
			err = resetErr
		}
	}()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := row(stmt); err != nil {
			return err
		}
	}
}

// bytesAt copies a blob or text column.
func bytesAt(stmt *sqlite.Stmt, column int) []byte {
	b := make([]byte, stmt.ColumnLen(column))
	stmt.ColumnBytes(column, b)
	return b
}
