//go:build crashsteps

package clock

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// stepFile is a file with the seconds by which a test has stepped the clock. It is read at most every stepCheckInterval.
var stepFile = os.Getenv("FANFARE_CLOCK_STEP")

const stepCheckInterval = 50 * time.Millisecond

var (
	stepStart   = time.Now()
	stepChecked atomic.Int64 // nanoseconds after stepStart
	stepSeconds atomic.Int64
)

// stepped returns the time of the stepped clock. The monotonic clock has no steps, and System.Now returns no monotonic time.
func stepped(now time.Time) time.Time {
	if stepFile == "" {
		return now
	}
	since := int64(now.Sub(stepStart))
	if last := stepChecked.Load(); since-last >= int64(stepCheckInterval) && stepChecked.CompareAndSwap(last, since) {
		text, _ := os.ReadFile(stepFile) // no file: no step
		seconds, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		stepSeconds.Store(seconds)
	}
	return now.Add(time.Duration(stepSeconds.Load()) * time.Second)
}
