package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A processUsage is the CPU time and memory that a process has taken. On systems without
// /proc, it is zero for a running process.
type ProcessUsage struct {
	CPU     time.Duration // user and system
	PeakMiB float64       // resident
}

func (u ProcessUsage) CPUSince(before ProcessUsage) time.Duration { return u.CPU - before.CPU }

func usageOf(s *os.ProcessState) ProcessUsage {
	u := ProcessUsage{CPU: s.UserTime() + s.SystemTime()}
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.PeakMiB = float64(r.Maxrss) / 1024
	}
	return u
}

// ticksPerSecond is the unit in which /proc counts CPU time (USER_HZ, 100 on Linux).
const ticksPerSecond = 100

// Used returns the usage of the process so far.
func (c *Process) Used() ProcessUsage {
	if c.ended {
		return c.Final
	}
	var u ProcessUsage
	stat, _ := os.ReadFile(c.procFile("stat"))
	// The name in parentheses may contain spaces. utime and stime are the 14th and
	// 15th field of proc(5), and the 12th and 13th after the name.
	if i := strings.LastIndexByte(string(stat), ')'); i >= 0 {
		if f := strings.Fields(string(stat[i+1:])); len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			u.CPU = time.Duration(user+system) * time.Second / ticksPerSecond
		}
	}
	u.PeakMiB = c.Memory("VmHWM")
	return u
}

// Memory returns a value of /proc/PID/status in MiB.
func (c *Process) Memory(name string) float64 {
	status, err := os.ReadFile(c.procFile("status"))
	if err != nil {
		return 0
	}
	var kib float64
	if _, err := fmt.Sscanf(fieldOf(string(status), name), "%f kB", &kib); err != nil {
		return 0
	}
	return kib / 1024
}

// ResetPeak resets the peak of the resident memory (proc(5), clear_refs).
func (c *Process) ResetPeak() { _ = os.WriteFile(c.procFile("clear_refs"), []byte("5"), 0o200) }

func (c *Process) procFile(file string) string {
	return fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file)
}

// isRunning reports whether a process still runs that nobody has waited for.
func isRunning(p *os.Process) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return p.Signal(syscall.Signal(0)) == nil
	}
	i := strings.LastIndexByte(string(stat), ')')
	return !strings.HasPrefix(string(stat[i+1:]), " Z")
}

// UsedByTree returns the CPU time of the process, of its children, and of those that have ended, and the memory of all that run, in which each
// counts its part of what they share.
func (c *Process) UsedByTree() (cpu time.Duration, memoryMiB float64) {
	pid := strconv.Itoa(c.cmd.Process.Pid)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // the process may have ended
		i := strings.LastIndexByte(string(stat), ')')
		if i < 0 {
			continue
		}
		f := strings.Fields(string(stat[i+1:]))
		itself := filepath.Base(dir) == pid
		if len(f) <= 14 || f[1] != pid && !itself {
			continue
		}
		for k := 11; k <= 14; k++ { // utime, stime, cutime, cstime
			ticks, _ := strconv.ParseInt(f[k], 10, 64)
			if k <= 12 || itself {
				cpu += time.Duration(ticks) * time.Second / ticksPerSecond
			}
		}
		rollup, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		var kib float64
		if _, err := fmt.Sscanf(fieldOf(string(rollup), "Pss"), "%f kB", &kib); err == nil {
			memoryMiB += kib / 1024
		}
	}
	return cpu, memoryMiB
}
