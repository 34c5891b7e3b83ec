package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/store"
)

// Sync makes the transactions of the control part survive a loss of power, also in durability
// relaxed. It syncs the write-ahead log only: SQLite has synced the file at the checkpoint, and
// opening and closing the file here would drop the locks of SQLite on it (see part.file). There
// are none on the log.
func (db *DB) Sync(context.Context) error {
	if db.durability == store.Fsync { // they have
		return nil
	}
	return syncLog(db.control.path)
}

// SyncAll does the same for the transactions of all parts.
func (db *DB) SyncAll(context.Context) error {
	db.mu.Lock()
	paths := []string{db.control.path, db.sessions.path, db.mailboxes.path}
	for _, p := range db.days {
		paths = append(paths, p.path)
	}
	db.mu.Unlock()
	for _, path := range paths {
		if err := syncLog(path); err != nil {
			return err
		}
	}
	return errors.Join(durablefile.SyncDir(db.dir), durablefile.SyncDir(filepath.Join(db.dir, daysFolder))) // SQLite syncs the name of a log at its own first sync
}

// syncLog syncs the write-ahead log of a file.
func syncLog(path string) error {
	f, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
