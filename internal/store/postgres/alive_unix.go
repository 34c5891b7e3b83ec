//go:build unix

package postgres

import (
	"errors"
	"net"
	"syscall"
)

// alive reports whether an idle connection was not closed by its other end, and
// has nothing to say: what a server says unasked is that it goes. It takes
// about a microsecond.
func alive(conn net.Conn) bool {
	if tls, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tls.NetConn()
	}
	below, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := below.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	// Not raw.Read, which waits for another reader: pgx leaves one behind where a
	// write was slow.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && silent
}
