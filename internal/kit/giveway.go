package kit

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// giveWayEvery is at how many steps others go first. Those of an import take one to
	// five microseconds.
	giveWayEvery = 64
	// giveWayFor is for how long after an event others are given way: an import that is
	// alone has nobody to give way to but its own stages, which costs it a seventh.
	giveWayFor = time.Second
)

// lastEvent is when an event came last, Unix nanoseconds.
var lastEvent atomic.Int64

// EventComes has long work give way for a while.
func EventComes() { lastEvent.Store(time.Now().UnixNano()) }

// GiveWay is called with each step, counted from 0, of work of which there is much,
// and now and then, while events come, has it wait behind all that is ready to run. A
// goroutine that only computes keeps its processor for 10 ms otherwise, and an event
// passes a dozen of them on its way. Who holds what others wait for does not give way.
func GiveWay(step int) {
	if step%giveWayEvery == giveWayEvery-1 && time.Now().UnixNano()-lastEvent.Load() < int64(giveWayFor) {
		runtime.Gosched()
	}
}
