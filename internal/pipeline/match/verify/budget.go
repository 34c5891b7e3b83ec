package verify

import (
	"math"
	"sync"
	"time"
)

// A Share is a share of the processor time that the process uses, from 0 to 1, or
// Unlimited.
type Share float64

// Unlimited checks every condition that the index reports.
var Unlimited = Share(math.Inf(1))

// DefaultShare is the share if none is configured.
const DefaultShare Share = 0.03

const (
	// minSlice is the shortest useful time: an event must be decoded before its first condition
	// can be evaluated.
	minSlice = 25 * time.Microsecond
	// maxSlice is the longest delay of one event, and so the most time that an idle server
	// saves.
	maxSlice = time.Millisecond
	// readInterval is how often the processor time of the process is read.
	readInterval = 2 * time.Millisecond
)

// A Meter measures time. Neither clock may go back.
type Meter interface {
	Elapsed() time.Duration   // since a fixed time
	Processor() time.Duration // used by the process, on all processors
}

// A budget grants time in proportion to the processor time of the process.
type budget struct {
	share Share
	meter Meter

	mu     sync.Mutex
	read   time.Duration // when the processor time was read
	used   time.Duration // the processor time then
	credit time.Duration // negative after a check that took longer than its time
}

func newBudget(share Share, meter Meter) *budget {
	if share == Unlimited {
		share = DefaultShare
	}
	return &budget{share: share, meter: meter, read: meter.Elapsed(), used: meter.Processor()}
}

// take grants time for one event; 0 if there is too little. The caller reports the used time to
// spend.
func (b *budget) take() (slice time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.meter.Elapsed(); now-b.read >= readInterval {
		used := b.meter.Processor()
		b.credit = min(b.credit+time.Duration(float64(used-b.used)*float64(b.share)), maxSlice)
		b.read, b.used = now, used
	}
	if b.credit < minSlice {
		return 0
	}
	slice, b.credit = b.credit, 0
	return slice
}

// spend returns the unused time of a slice.
func (b *budget) spend(slice, used time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit = min(b.credit+slice-used, maxSlice)
}
