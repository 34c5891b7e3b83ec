//go:build !linux

package sink

import (
	"errors"
	"syscall"
)

func onlyLoopback(string, string, syscall.RawConn) error {
	return errors.New("listening on all of 127.0.0.0/8 is only supported on Linux; use a single address")
}
