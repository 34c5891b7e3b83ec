// Package background lets long computations, such as imports, yield the processor while
// events pass through the server.
package background

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// yieldEvery is the number of steps between two yields. A step of an import takes one to
	// five microseconds.
	yieldEvery = 64
	// yieldFor is how long after an event background work yields. An import yields only while
	// events arrive, because yielding to its own goroutines makes it slower by a seventh.
	yieldFor = time.Second
)

// lastEvent is the Unix time of the last event in nanoseconds.
var lastEvent atomic.Int64

// EventArrived makes background work yield for the next second.
func EventArrived() { lastEvent.Store(time.Now().UnixNano()) }

// Yield lets other goroutines run first if an event arrived within the last second. Background
// work calls it with the number of each step, counted from 0. A goroutine that only computes
// keeps its processor for 10 ms otherwise, and an event passes through a dozen goroutines.
// Do not call it while holding a lock that other goroutines wait for.
func Yield(step int) {
	if step%yieldEvery == yieldEvery-1 && time.Now().UnixNano()-lastEvent.Load() < int64(yieldFor) {
		runtime.Gosched()
	}
}
