//go:build !linux

package sink

import (
	"errors"
	"syscall"
)

func onlyLoopback(string, string, syscall.RawConn) error {
	return errors.New("only Linux can listen on all of 127.0.0.0/8: use one address")
}
