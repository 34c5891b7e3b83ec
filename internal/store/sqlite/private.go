package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare/internal/durablefile"
)

// others is the mask of permissions of users who are neither the owner of a file nor in its group.
const others = 0o007

// keepPrivate creates a missing database file so that only its owner can read it, because it contains addresses. SQLite
// would create a file that everybody with access to the folder can read. From an existing file it removes the permissions
// of others. A new log gets the mode of its file. No connection may be open, because closing a file releases the locks of
// the process on it.
func keepPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return errors.Join(f.Close(), durablefile.SyncDir(filepath.Dir(path)))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().Perm()&others != 0 {
			err = os.Chmod(name, info.Mode().Perm()&^others)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) { // a file of another owner stays unchanged
			return err
		}
	}
	return nil
}
