package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

// partial is the suffix of an incomplete file.
const partial = ".partial"

// Keep writes a backup from r into a new file with mode 0600. It verifies the backup while it reads, verifies the file on the disk, and then
// gives the file its final name. After an error there is no file. It calls progress with the bytes so far and the estimated total.
func Keep(r io.Reader, file string, progress func(done, total int64)) (m Manifest, err error) {
	if _, err := os.Lstat(file); err == nil {
		return m, &fanfare.Error{Code: fanfare.Conflict, Message: file + " exists", Hint: "choose another name, for example one with the date"}
	}
	if err := os.Remove(file + partial); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed backup
		return m, err
	}
	out, err := os.OpenFile(file+partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, partMode)
	if err != nil {
		return m, err
	}
	defer func() {
		closing := out.Close()
		if err != nil {
			err = errors.Join(err, os.Remove(file+partial))
			return
		}
		if err = closing; err == nil {
			err = durablefile.Rename(file+partial, file)
		}
	}()
	watch := &watched{to: out, progress: progress}
	m, err = Read(io.TeeReader(r, watch), Visitor{Header: func(h Header) error {
		watch.total = h.Bytes
		return checkSpace(filepath.Dir(file), h.Bytes)
	}})
	if broken, ok := errors.AsType[*fanfare.Error](err); ok && broken.Code == fanfare.Invalid {
		told := *broken
		told.Hint = "the server stopped the backup or the connection was lost: check the server log, and take the backup again"
		return m, &told
	}
	if err == nil {
		err = out.Sync()
	}
	if err == nil {
		_, err = Verify(file+partial, nil)
	}
	return m, err
}

// Verify reads and verifies a file.
func Verify(file string, progress func(done, total int64)) (Manifest, error) {
	in, err := os.Open(file)
	if err != nil {
		return Manifest{}, err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return Manifest{}, err
	}
	return Read(io.TeeReader(in, &watched{to: io.Discard, progress: progress, total: info.Size()}), Visitor{})
}

// checkSpace returns an error if the disk has less free space than needed.
func checkSpace(dir string, bytes int64) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("determine the free disk space of %s: %w", dir, err)
	}
	if free := int64(stat.Bavail) * stat.Bsize; free < bytes {
		return &fanfare.Error{Code: fanfare.DiskFull, Message: fmt.Sprintf("the disk of %s has %d MB free, but about %d MB are needed", dir, free>>20, bytes>>20+1), Hint: "free some space, or choose another directory"}
	}
	return nil
}

// watched reports progress.
type watched struct {
	to          io.Writer
	progress    func(done, total int64) // or nil
	done, total int64
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.done += int64(n)
	if w.progress != nil {
		w.progress(w.done, max(w.total, w.done))
	}
	return n, err
}
