package demo

import (
	"os"
	"strconv"
	"strings"
)

// peakMemory returns the peak memory of this process in MiB (proc(5), VmHWM), or 0 if the system
// does not report it.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err == nil {
			return kib >> 10
		}
	}
	return 0
}
