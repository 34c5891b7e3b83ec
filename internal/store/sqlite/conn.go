// Package sqlite keeps Fanfare's state in SQLite files under one directory:
// control.db for what people configure and subscribe to, and one file per day
// for what was sent (deliveries-20261120.db), so that an import never blocks
// recording and retention is the removal of a file.
//
// A writer that commits is durable: in durability fsync every commit is synced
// (synchronous=FULL), in relaxed it is written to the operating system and
// survives a kill of the process, not a loss of power. After an error of the
// disk the transaction is rolled back as a whole and the error returned; the
// file stays usable.
package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Durability says what a commit survives.
type Durability string

// The durabilities.
const (
	Fsync   Durability = "fsync"   // a loss of power
	Relaxed Durability = "relaxed" // a kill of the process
)

// checkpointPages is when a commit moves the write-ahead log into the file: at
// 4 KiB a page, 80 MB. Larger is fewer random writes, smaller a quicker start.
const checkpointPages = 20_000

// openWriter opens the one connection that writes to the file, and creates it.
func openWriter(path string, durability Durability, cacheKiB int) (*sqlite.Conn, error) {
	synchronous := "FULL"
	if durability == Relaxed {
		synchronous = "NORMAL"
	}
	return open(path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL, []string{
		"PRAGMA synchronous=" + synchronous,
		fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", checkpointPages),
		fmt.Sprintf("PRAGMA cache_size=-%d", cacheKiB),
		"PRAGMA temp_store=MEMORY",
		"PRAGMA foreign_keys=OFF",
	})
}

// openReader opens a connection that only reads. It sees each commit of the
// writer from its next statement on.
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
