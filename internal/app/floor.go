package app

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
)

// diskFloor closes the intake while the disk of the data directory is nearly
// full, so that outcomes can still be recorded. It looks at most once a second.
type diskFloor struct {
	dir     string
	floor   config.DiskFloor
	checked atomic.Int64 // unix nanoseconds
	free    atomic.Int64
	low     atomic.Int64 // the floor in bytes
}

// free returns how many bytes are free for this user.
func (f *diskFloor) look() int64 {
	now := time.Now().UnixNano()
	last := f.checked.Load()
	if now-last < int64(time.Second) || !f.checked.CompareAndSwap(last, now) {
		return f.free.Load()
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(f.dir, &stat); err != nil {
		return f.free.Load()
	}
	f.low.Store(f.floor.Bytes(int64(stat.Blocks) * stat.Bsize))
	f.free.Store(int64(stat.Bavail) * stat.Bsize)
	return f.free.Load()
}

// Check returns an error while there is less than the floor.
func (f *diskFloor) Check() error {
	free := f.look()
	if free >= f.low.Load() {
		return nil
	}
	return &fanfare.Error{Code: fanfare.DiskFull,
		Message: fmt.Sprintf("the disk has %d MB free, less than the floor of %d MB: nothing new is taken, delivery goes on", free>>20, f.low.Load()>>20),
		Hint:    "free some space, shorten retention_days or lower disk_floor"}
}
