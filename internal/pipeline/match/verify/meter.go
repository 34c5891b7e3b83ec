package verify

import (
	"syscall"
	"time"
)

// ProcessMeter measures the time and the processor time of this process.
type ProcessMeter struct{ Start time.Time }

// Elapsed is the time since the meter was made.
func (m ProcessMeter) Elapsed() time.Duration { return time.Since(m.Start) }

// Processor is the processor time that the process has used, in user and in system mode.
func (m ProcessMeter) Processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
