//go:build !linux

package sink

import (
	"errors"
	"syscall"
)

func onlyLoopback(string, string, syscall.RawConn) error {
	return errors.New("listening on all of 127.0.0.0/8 works on Linux only: use one address")
}
