package disk

import (
	"math/rand/v2"
	"syscall"
)

// An operation is a kind of call that can fail.
type operation int

const (
	onOpen operation = iota
	onRead
	onWrite
	onSync
	onMake
	onRemove
	onRename
)

// Faults say how often calls fail. The zero value has no faults.
type Faults struct {
	Seed  uint64
	After int64 // calls that succeed before the first can fail

	IOErrors float64 // share of the calls that fail with EIO, reads and syncs included
	Full     float64 // share of the calls that need space and fail with ENOSPC

	SyncsOnly bool // of IOErrors: only syncs fail
}

// SetFaults sets the faults from now on.
func (d *Disk) SetFaults(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.random = f, rand.New(rand.NewPCG(f.Seed, f.Seed))
}

// fault returns the error of a call, or 0.
func (d *Disk) fault(on operation) syscall.Errno {
	f := &d.faults
	if f.IOErrors == 0 && f.Full == 0 {
		return 0
	}
	if f.After > 0 {
		f.After--
		return 0
	}
	needsSpace := on == onWrite || on == onMake || on == onSync || on == onRename
	switch roll := d.random.Float64(); {
	case roll < f.IOErrors && (!f.SyncsOnly || on == onSync):
		d.counted.Failed++
		return syscall.EIO
	case roll >= f.IOErrors && roll < f.IOErrors+f.Full && needsSpace:
		d.counted.Failed++
		return syscall.ENOSPC
	}
	return 0
}
