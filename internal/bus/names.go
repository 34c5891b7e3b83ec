package bus

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/durablefile"
)

// blockNames makes the names of the files of a stream durable. An embedded NATS server syncs each append to a file, but not the
// directory in which it has created the file: after a loss of power, a new file would be missing with all that was acknowledged in it.
// A nil *blockNames does nothing.
type blockNames struct {
	dir string

	mu     sync.Mutex
	synced time.Time // change of the directory that was synced last
}

// clockTick is longer than the steps of the times that a file system gives to directories. Two files that are
// created within a step give a directory the same time.
const clockTick = 50 * time.Millisecond

// namesOf returns the names of the files of a stream, or nil if the bus does not promise that appends survive a loss of power by
// itself.
func (b *Bus) namesOf(stream string) *blockNames {
	if !b.alone || !b.options.Sync {
		return nil
	}
	return &blockNames{dir: filepath.Join(b.options.Dir, "jetstream", "$G", "streams", stream, "msgs")}
}

// sync syncs the directory if it has changed since the last call.
func (n *blockNames) sync() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	info, err := os.Stat(n.dir)
	if err != nil {
		return err
	}
	changed, now := info.ModTime(), time.Now()
	if changed.Equal(n.synced) {
		return nil
	}
	if err := durablefile.SyncDir(n.dir); err != nil {
		return err
	}
	if now.Sub(changed) > clockTick {
		n.synced = changed
	}
	return nil
}

// resync writes the newest file of each stream, and the small files of streams and consumers, once more. After an error of a sync, Linux
// considers the pages clean although the disk does not have them, and a later sync of the same file does not write them. A server
// that starts after such an error must not build on them.
func resync(dir string) error {
	newest := map[string]string{} // block file of each folder
	var others []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return nil
		case err != nil || !entry.Type().IsRegular():
			return err
		case entry.Name() == durablefile.Rewriting:
			return os.Remove(path) //nolint:gosec // only this process writes there
		case filepath.Ext(path) != ".blk":
			others = append(others, path)
			return nil
		}
		folder := filepath.Dir(path)
		if number(path) >= number(newest[folder]) {
			newest[folder] = path
		}
		return nil
	})
	for _, path := range append(others, slices.Collect(maps.Values(newest))...) {
		if err == nil {
			err = durablefile.Rewrite(path)
		}
	}
	return err
}

// number returns the number of a block file, or -1.
func number(path string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
	if err != nil {
		return -1
	}
	return n
}

// syncTree makes the names of all directories of the bus durable after a stream or a consumer was created.
func (b *Bus) syncTree() error {
	if !b.alone || !b.options.Sync {
		return nil
	}
	return durablefile.SyncTree(b.options.Dir)
}
