package verify

import (
	"math"
	"sync"
	"time"
)

// A Share is a share of the processor time that the process uses, from 0 to 1, or
// Unlimited.
type Share float64

// Unlimited has every condition checked that the index reports.
var Unlimited = Share(math.Inf(1))

// DefaultShare is the share where nothing else is said.
const DefaultShare Share = 0.03

const (
	// minSlice is the least time that is worth beginning with: an event has to be decoded
	// before the first condition can be evaluated for it.
	minSlice = 25 * time.Microsecond
	// maxSlice is the most time that one event is held up for, and so the most that an
	// idle server saves up.
	maxSlice = time.Millisecond
	// readEvery is how often the processor time of the process is read.
	readEvery = 2 * time.Millisecond
)

// A Meter measures time. Both clocks only ever advance.
type Meter interface {
	Elapsed() time.Duration   // since some moment
	Processor() time.Duration // that the process has used, of all processors
}

// A budget grants time in proportion to what the process uses.
type budget struct {
	share Share
	meter Meter

	mu     sync.Mutex
	read   time.Duration // when the processor time was read
	used   time.Duration // and what it was
	credit time.Duration // negative after a check that took longer than was granted
}

func newBudget(share Share, meter Meter) *budget {
	if share == Unlimited {
		share = DefaultShare
	}
	return &budget{share: share, meter: meter, read: meter.Elapsed(), used: meter.Processor()}
}

// take grants time for one event, 0 where there is none to begin with. What is taken
// must be given back by spend.
func (b *budget) take() (slice time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.meter.Elapsed(); now-b.read >= readEvery {
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

// spend says how much of a slice was used.
func (b *budget) spend(slice, used time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit = min(b.credit+slice-used, maxSlice)
}
