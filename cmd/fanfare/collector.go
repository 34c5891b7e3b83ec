package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much the heap may grow before it is collected, unless GOGC
	// says otherwise. What a broadcast of a million takes for a moment counts twice
	// with Go's own 100: this saves 60 MB of 380, for a fiftieth of the rate.
	gcPercent = 70
	// gcRoom is what it may grow by where that is less: most of a large heap is the
	// index of conditions, which stays, and what passes by is as much as with a small one.
	gcRoom = 256 << 20
	// gcLeast bounds the work of the collector where the heap is very large.
	gcLeast = 20
)

// percentFor is how much a heap may grow of which so many bytes are in use.
func percentFor(live uint64) int {
	if live <= gcRoom*100/gcPercent {
		return gcPercent
	}
	return max(gcLeast, int(gcRoom*100/live))
}

// tuneCollector follows the size of the heap until ctx ends.
func tuneCollector(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := 0
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		metrics.Read(live)
		if percent := percentFor(live[0].Value.Uint64()); percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
