package process

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much the heap may grow before it is collected, unless GOGC is
	// set. With Go's default of 100, the temporary memory of a large broadcast counts
	// twice. 70 saves 60 MB of 380 and costs 2 % of the rate.
	gcPercent = 70
	// gcGrowthBytes limits the growth of a large heap. Most of it is the index of
	// conditions, which stays; the temporary memory is as large as with a small heap.
	gcGrowthBytes = 256 << 20
	// gcLeast bounds the work of the collector where the heap is very large.
	gcLeast = 20
)

// percentFor is how much a heap may grow of which so many bytes are in use.
func percentFor(live uint64) int {
	if live <= gcGrowthBytes*100/gcPercent {
		return gcPercent
	}
	return max(gcLeast, int(gcGrowthBytes*100/live))
}

// TuneCollector follows the size of the heap until ctx ends.
func TuneCollector(ctx context.Context) {
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
