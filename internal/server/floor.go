package server

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
	last    atomic.Pointer[diskSpace]
}

// diskSpace is what one look found, in bytes: both numbers are of one moment.
type diskSpace struct{ free, low int64 }

// look returns how many bytes are free for this user.
func (f *diskFloor) look() int64 { return f.space().free }

func (f *diskFloor) space() diskSpace {
	now := time.Now().UnixNano()
	last := f.checked.Load()
	if now-last >= int64(time.Second) && f.checked.CompareAndSwap(last, now) {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(f.dir, &stat); err == nil {
			f.last.Store(&diskSpace{int64(stat.Bavail) * stat.Bsize, f.floor.Bytes(int64(stat.Blocks) * stat.Bsize)})
		}
	}
	if s := f.last.Load(); s != nil {
		return *s
	}
	return diskSpace{} // another caller is about to know
}

// Check returns an error while there is less than the floor.
func (f *diskFloor) Check() error {
	s := f.space()
	if s.free >= s.low {
		return nil
	}
	return &fanfare.Error{Code: fanfare.DiskFull,
		Message: fmt.Sprintf("the disk has %d MB free, less than the floor of %d MB: nothing new is taken, delivery goes on", s.free>>20, s.low>>20),
		Hint:    "free some space, shorten retention_days or lower disk_floor"}
}
