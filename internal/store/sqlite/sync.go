package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Sync makes the transactions of the control part survive a loss of power, also in durability
// relaxed. It syncs the write-ahead log only: SQLite has synced the file at the checkpoint, and
// opening and closing the file here would drop the locks of SQLite on it (see part.file). There
// are none on the log.
func (db *DB) Sync(context.Context) error {
	f, err := os.OpenFile(db.control.path+"-wal", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
