// Package datadir knows the data directory of a server: the names of its files, the lock that keeps a second
// server out, and its free disk space. It keeps the last measurement of the disk in memory. The wiring of the
// server and the packages that back up, move and restore data call it.
package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fanfare.dev/fanfare"
)

// Names of files and folders in a data directory.
const (
	Bus        = "bus"         // folder of the embedded bus of a server that is alone
	BusCluster = "bus-cluster" // folder of the embedded NATS server of a node
	AdminKey   = "admin.key"   // key of the local command line
	Control    = "control.db"  // present if the data are, or were, in SQLite files
	lockFile   = "lock"
)

// Has reports whether a data directory has a file of that name.
func Has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// TrimLine returns the text of a file of one line, without the line end.
func TrimLine(b []byte) string { return strings.TrimRight(string(b), "\r\n") }

// Unusable returns the error of a data directory that cannot be made or written.
func Unusable(err error) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the data directory cannot be used: " + err.Error(),
		Hint: "set data_dir to a directory that is owned by the user that runs the server"}
}

// Lock locks a data directory until unlock is called. It fails with the code Conflict if another server has it.
func Lock(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Unusable(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&fanfare.Error{Code: fanfare.Conflict, Message: "another server is using " + dir, Hint: "stop the other server, or set a different data_dir for this server"}, f.Close())
	}
	return f.Close, nil
}

// InUse reports whether a server uses a data directory.
func InUse(dir string) bool {
	if !Has(dir, lockFile) {
		return false
	}
	unlock, err := Lock(dir)
	if err != nil {
		return fanfare.CodeOf(err) == fanfare.Conflict
	}
	return unlock() != nil
}
