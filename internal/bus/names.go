package bus

import (
	"os"
	"path/filepath"
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

// syncTree makes the names of all directories of the bus durable after a stream or a consumer was created.
func (b *Bus) syncTree() error {
	if !b.alone || !b.options.Sync {
		return nil
	}
	return durablefile.SyncTree(b.options.Dir)
}
