//go:build !linux

package sink

import (
	"errors"
	"syscall"
)

func onlyLoopback(string, string, syscall.RawConn) error {
	return errors.New("all of 127.0.0.0/8 can be listened at on Linux only; name one address")
}
