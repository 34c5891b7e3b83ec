//go:build !linux

package pgtest

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of PostgreSQL's process. It has its own process group, so that Ctrl-C reaches only the
// test. The janitor stops it.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true}
}

// reserve finds a port of 127.0.0.1 that is free now.
func reserve() (port int, release func(), err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return 0, nil, err
	}
	return l.Addr().(*net.TCPAddr).Port, func() {}, l.Close()
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "pgrep", "-P", strconv.Itoa(pid)).Output() //nolint:gosec // a number
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && exit.ExitCode() == 1 {
		return nil, nil // none
	}
	var children []int
	for _, field := range strings.Fields(string(out)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, err
}

// alive reports whether a process still holds resources.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// halted reports whether a process was stopped and is not creating a child.
func halted(pid int) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // a number
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "T")
}
