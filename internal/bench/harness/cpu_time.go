package harness

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine on which a figure was measured.
func Machine() string {
	model, memory := runtime.GOARCH, ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if v := fieldOf(string(b), "model name"); v != "" {
			model = v
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if _, err := fmt.Sscanf(fieldOf(string(b), "MemTotal"), "%d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %.0f GiB", float64(kib)/(1<<20))
		}
	}
	return fmt.Sprintf("%d x %s%s, %s, %s", runtime.NumCPU(), model, memory, runtime.GOOS, runtime.Version())
}

// fieldOf returns the value of the line "name: value" in a text of the form of
// /proc/cpuinfo.
func fieldOf(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if value, ok := strings.CutPrefix(strings.TrimSpace(rest), ":"); ok {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// CPUTimes are the times that all CPUs of this machine have spent since its start.
type CPUTimes struct {
	busy  time.Duration // by processes of this machine, and by other tenants
	idle  time.Duration
	steal time.Duration // of busy: what the hypervisor gave to other tenants
}

// ReadCPUTimes reads the first line of /proc/stat (proc(5)). It returns zeros on
// systems that have none.
func ReadCPUTimes() CPUTimes {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	return parseCPUTimes(line)
}

// The columns of /proc/stat after the name of the CPU.
const (
	columnIdle   = 3
	columnIOWait = 4
	columnSteal  = 7
)

func parseCPUTimes(line string) CPUTimes {
	var t CPUTimes
	fields := strings.Fields(line)
	for i, field := range fields[min(1, len(fields)):] {
		n, _ := strconv.ParseInt(field, 10, 64)
		d := time.Duration(n) * time.Second / ticksPerSecond
		switch {
		case i == columnIdle, i == columnIOWait:
			t.idle += d
		case i <= columnSteal: // the columns after it are part of the user time
			t.busy += d
		}
		if i == columnSteal {
			t.steal = d
		}
	}
	return t
}

// since returns the times that have passed since before.
func (t CPUTimes) since(before CPUTimes) CPUTimes {
	return CPUTimes{t.busy - before.busy, t.idle - before.idle, t.steal - before.steal}
}

func (t CPUTimes) plus(o CPUTimes) CPUTimes {
	return CPUTimes{t.busy + o.busy, t.idle + o.idle, t.steal + o.steal}
}

// others returns the share of all CPUs that anything but this experiment has taken in a
// time.
func (t CPUTimes) others(ours time.Duration) float64 {
	if t.busy+t.idle <= 0 {
		return 0
	}
	return max(float64(t.busy-ours)/float64(t.busy+t.idle), 0)
}

// Stolen returns the share of all CPUs that other tenants have taken since before.
func (t CPUTimes) Stolen(before CPUTimes) float64 {
	all := t.busy + t.idle - before.busy - before.idle
	if all <= 0 {
		return 0
	}
	return max(0, float64(t.steal-before.steal)/float64(all))
}
