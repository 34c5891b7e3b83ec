package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

// restoring is a file that exists during a restore, and after a restore that was killed.
const restoring = ".restoring"

// Restore restores a backup into a directory that is empty or does not exist. The next server that starts there finishes
// the restore; see Note.Finish. After an error the directory is empty. Restore calls progress with the bytes so far and the
// estimated total.
func Restore(r io.Reader, dir string, now time.Time, progress func(done, total int64)) (m Manifest, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return m, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := vacate(root, dir); err != nil {
		return m, err
	}
	if err := write(root, restoring, nil); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, sweep(root))
		}
	}()
	watch := &watched{to: io.Discard, progress: progress}
	m, err = Read(io.TeeReader(r, watch), Visitor{
		Header: func(h Header) error {
			watch.total = h.Bytes
			return checkSpace(dir, h.Bytes)
		},
		Part: func(name string, _ int64, content io.Reader) error { return writePart(root, name, content) },
	})
	if err != nil {
		return m, err
	}
	note := Note{State: noteNew, Fanfare: m.Fanfare, Backup: m.Began, Restored: now, LastEvent: m.LastEvent}
	if err := writeNote(root, &note); err != nil {
		return m, err
	}
	if err := errors.Join(syncIfThere(filepath.Join(dir, daysDir)), syncIfThere(filepath.Join(dir, eventsDir)), durablefile.SyncDir(dir)); err != nil {
		return m, err
	}
	if err := root.Remove(restoring); err != nil {
		return m, err
	}
	return m, durablefile.SyncDir(dir)
}

// Interrupted returns an error if a restore into the directory was killed.
func Interrupted(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, restoring))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: "a restore into " + dir + " was interrupted", Hint: "run fanfare restore again; it starts from the beginning"}
}

// vacate removes the files of an interrupted restore, and returns an error if the directory contains other files.
func vacate(root *os.Root, dir string) error {
	if _, err := root.Lstat(restoring); err == nil {
		return sweep(root)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" { // the directory may be a mount point
			return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%s is not empty: it contains %s", dir, entry.Name()),
				Hint: "restore into an empty directory, then move the directory into place"}
		}
	}
	return nil
}

// sweep removes the files of a restore, and the file .restoring last.
func sweep(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == daysDir, name == eventsDir, name == noteFile, name == noteFile+partial, known(name):
			if err := root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return root.Remove(restoring)
}

func writePart(root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), 0o700); err != nil {
		return err
	}
	out, err := root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, partMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, content); err != nil {
		return err
	}
	return out.Sync()
}

func write(root *os.Root, name string, text []byte) error {
	return root.WriteFile(name, text, partMode)
}

func syncIfThere(dir string) error {
	if err := durablefile.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
