package sink

import (
	"os"
	"syscall"
)

// onlyLoopback binds a socket to the loopback device (socket(7), SO_BINDTODEVICE), so that
// it is reachable at 127.0.0.0/8 only.
func onlyLoopback(_, _ string, conn syscall.RawConn) error {
	var refused error
	err := conn.Control(func(fd uintptr) {
		refused = os.NewSyscallError("setsockopt", syscall.BindToDevice(int(fd), "lo"))
	})
	if err != nil {
		return err
	}
	return refused
}
