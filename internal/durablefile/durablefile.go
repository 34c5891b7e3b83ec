// Package durablefile creates, replaces and renames files so that they survive a loss of power.
//
// A sync of a file makes its content durable, but not its name: POSIX promises that only after a sync of the directory. Each
// function therefore syncs the directories whose names it changed, and returns when that is done. The package keeps no state. All
// packages that create files in a data directory call it.
package durablefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDir creates a directory and its missing parents, with durable names.
func MakeDir(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MakeDir(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(err, os.MkdirAll(path, mode)) // says that it is not a directory
	}
	return SyncDir(parent)
}

// partial ends the name of a file that is not complete.
const partial = ".new"

// Write creates or replaces a file as a whole: after a loss of power, the file has the old or the new content. Only its owner can
// read it.
func Write(path string, content []byte) error {
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Rename(path+partial, path)
}

// Rewriting is the name of an incomplete copy in the folder of a file that Rewrite replaces.
const Rewriting = ".rewriting"

// Rewrite replaces a file by a copy of itself, so that the disk has all that a reader sees.
func Rewrite(path string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	copied := filepath.Join(filepath.Dir(path), Rewriting)
	to, err := os.OpenFile(copied, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, from); err == nil {
		err = to.Sync()
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	return Rename(copied, path)
}

// Rename renames a file or a directory, as os.Rename does.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	err := SyncDir(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, SyncDir(filepath.Dir(from)))
	}
	return err
}

// Remove removes a file or an empty directory, so that a loss of power does not bring it back. A missing one is not an error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncTree makes the name of a directory and all names below it durable, but not the content of its files.
func SyncTree(path string) error {
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil || !entry.IsDir():
			return err
		}
		if err = SyncDir(name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return errors.Join(err, SyncDir(filepath.Dir(filepath.Clean(path))))
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error { return Sync(path) }

// Sync makes the content of a file durable, or the names in a directory.
func Sync(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
