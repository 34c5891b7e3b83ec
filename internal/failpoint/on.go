//go:build crashsteps

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashAt is the step at which the process ends, and crashAfter how many hits of it are left.
// FANFARE_CRASH_AT=step:count sets both.
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

// Hit ends the process with SIGKILL at the chosen hit of the chosen step.
func Hit(name string) {
	if name != crashAt || crashAfter.Add(-1) != 0 {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}

var fault = os.Getenv("FANFARE_FAULT")

// Fault reports whether FANFARE_FAULT asks for the named fault.
func Fault(name string) bool { return name == fault }
