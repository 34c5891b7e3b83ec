package pgtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of PostgreSQL's process. It has its own process group, so that Ctrl-C reaches only the
// test, and it is killed as soon as the thread that started it ends.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}

// reserve takes a port of 127.0.0.1 that the kernel gives to nobody until it is
// released, while PostgreSQL, which like us allows an address to be used again,
// can listen on it at any time.
func reserve() (port int, release func(), err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	release = func() { _ = syscall.Close(socket) }
	defer func() {
		if err != nil {
			release()
		}
	}()
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	return at.(*syscall.SockaddrInet4).Port, release, nil
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, entry := range all {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		if _, parent := stat(child); parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}

// alive reports whether a process still holds resources.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z" && state != "X"
}

// halted reports whether a process was stopped and is not creating a child.
func halted(pid int) bool {
	state, _ := stat(pid)
	return state == "T"
}

// stat reads the state and the parent of a process, "" if there is none.
func stat(pid int) (state string, parent int) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	text := string(line)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name before it may hold anything
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
