//go:build !unix

package postgres

import "net"

// alive always returns true: on this system an idle connection cannot be checked before it is used.
func alive(net.Conn) bool { return true }
