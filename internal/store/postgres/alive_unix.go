//go:build unix

package postgres

import (
	"errors"
	"net"
	"syscall"
)

// alive reports whether an idle connection is usable: its other end has not closed it and has sent nothing. A server sends
// an unrequested message only when it closes the connection. The check takes about a microsecond.
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
	// It does not use raw.Read, which waits for another reader: pgx leaves one behind after a slow write.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && silent
}
