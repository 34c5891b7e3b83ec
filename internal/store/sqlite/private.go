package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// others are the rights of who is neither the owner of a file nor in its group.
const others = 0o007

// keepPrivate makes the file of a database, where it is missing, one that its owner
// alone reads: it has people's addresses, and SQLite would make one that everybody
// reads who comes into the folder, which somebody else may have made. From a file that
// is there it takes the rights of others. A new log has the mode of its file. No
// connection may be open: closing a file ends the locks of the process on it.
func keepPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return f.Close()
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
		if err != nil && !errors.Is(err, fs.ErrPermission) { // the file of another owner stays as he has it
			return err
		}
	}
	return nil
}
