package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A usage is what a process has taken. On systems without /proc, that of a
// running process is zero.
type usage struct {
	cpu     time.Duration // user and system
	peakMiB float64       // resident
}

func (u usage) since(before usage) time.Duration { return u.cpu - before.cpu }

func usageOf(s *os.ProcessState) usage {
	u := usage{cpu: s.UserTime() + s.SystemTime()}
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.peakMiB = float64(r.Maxrss) / 1024
	}
	return u
}

// ticksPerSecond is what /proc counts CPU in (USER_HZ, 100 on all of Linux).
const ticksPerSecond = 100

// now returns the usage of a running child.
func (c *child) now() usage {
	if c.ended {
		return c.final
	}
	var u usage
	stat, _ := os.ReadFile(c.proc("stat"))
	// The name in parentheses may hold spaces; utime and stime are the 14th and
	// 15th field of proc(5), the 12th and 13th behind it.
	if i := strings.LastIndexByte(string(stat), ')'); i >= 0 {
		if f := strings.Fields(string(stat[i+1:])); len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			u.cpu = time.Duration(user+system) * time.Second / ticksPerSecond
		}
	}
	u.peakMiB = c.memory("VmHWM")
	return u
}

// memory returns a line of /proc/PID/status in MiB.
func (c *child) memory(name string) float64 {
	status, err := os.ReadFile(c.proc("status"))
	if err != nil {
		return 0
	}
	var kib float64
	if _, err := fmt.Sscanf(fieldOf(string(status), name), "%f kB", &kib); err != nil {
		return 0
	}
	return kib / 1024
}

// forgetPeak makes the peak begin anew (proc(5), clear_refs).
func (c *child) forgetPeak() { _ = os.WriteFile(c.proc("clear_refs"), []byte("5"), 0o200) }

func (c *child) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file)
}

// alive reports whether a process that was not waited for still runs.
func alive(p *os.Process) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return p.Signal(syscall.Signal(0)) == nil
	}
	i := strings.LastIndexByte(string(stat), ')')
	return !strings.HasPrefix(string(stat[i+1:]), " Z")
}
