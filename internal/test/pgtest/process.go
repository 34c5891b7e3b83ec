package pgtest

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
)

// environment removes the settings of the user who runs the test from the environment of PostgreSQL.
var environment = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}

// process is PostgreSQL's first one.
type process struct {
	pid  int
	gone chan struct{} // closed when it has ended
}

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// run starts a program on a thread that lives until the program has ended: a
// signal for the death of a parent is one for the death of its thread.
func run(path string, args []string, dir string, log *os.File, as *syscall.Credential, at Place) (*process, error) {
	cmd := exec.CommandContext(context.Background(), path, args...) //nolint:gosec // a program that was downloaded
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, slices.Concat(environment, at.Environment), log, log
	cmd.SysProcAttr = attributes(as)
	p := &process{gone: make(chan struct{})}
	begun := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if at.Namespace == "" {
			defer runtime.UnlockOSThread()
		} // otherwise the thread ends with this goroutine, because it cannot return to its namespace
		err := at.enter()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		begun <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(p.gone)
		}
	}()
	return p, <-begun
}
