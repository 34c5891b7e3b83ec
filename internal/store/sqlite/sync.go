package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Sync has what was kept in the control part survive a loss of power, also in
// durability relaxed. What is not in the write-ahead log any more was synced when it
// was moved into the file; and the file itself must not be opened and closed beside
// SQLite, which has locks on it (see part.file) and none on the log.
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
