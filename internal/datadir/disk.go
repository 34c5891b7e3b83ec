package datadir

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
)

// A DiskFloor refuses new data while the disk of a data directory is nearly full, so that outcomes can still be
// recorded. It measures the disk at most once a second.
type DiskFloor struct {
	Dir     string
	Floor   config.DiskFloor
	checked atomic.Int64 // unix nanoseconds
	last    atomic.Pointer[diskSpace]
}

// diskSpace is one measurement, in bytes.
type diskSpace struct{ free, floor int64 }

// Free returns how many bytes are free for this user.
func (f *DiskFloor) Free() int64 { return f.measure().free }

func (f *DiskFloor) measure() diskSpace {
	now := time.Now().UnixNano()
	last := f.checked.Load()
	if now-last >= int64(time.Second) && f.checked.CompareAndSwap(last, now) {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(f.Dir, &stat); err == nil {
			f.last.Store(&diskSpace{int64(stat.Bavail) * stat.Bsize, f.Floor.Bytes(int64(stat.Blocks) * stat.Bsize)})
		}
	}
	if s := f.last.Load(); s != nil {
		return *s
	}
	return diskSpace{} // another goroutine makes the first measurement
}

// Check returns an error with the code DiskFull while less than the floor is free.
func (f *DiskFloor) Check() error {
	s := f.measure()
	if s.free >= s.floor {
		return nil
	}
	return &fanfare.Error{Code: fanfare.DiskFull,
		Message: fmt.Sprintf("free disk space is %d MB, below the minimum of %d MB: the server rejects new data but continues to deliver messages", s.free>>20, s.floor>>20),
		Hint:    "free some space, or lower retention_days or disk_floor"}
}
