//go:build crashsteps

package kit

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashAt is the step and how many passings of it are left, from
// FANFARE_CRASH_AT=step:count.
var crashAt, crashAfter = func() (string, *atomic.Int64) {
	step, count, _ := strings.Cut(os.Getenv("FANFARE_CRASH_AT"), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	left := new(atomic.Int64)
	left.Store(n)
	return step, left
}()

// Step ends the process with SIGKILL at the chosen passing of the chosen step.
func Step(name string) {
	if name != crashAt || crashAfter.Add(-1) != 0 {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}

var fault = os.Getenv("FANFARE_FAULT")

// Fault reports whether the named fault is asked for by FANFARE_FAULT.
func Fault(name string) bool { return name == fault }
