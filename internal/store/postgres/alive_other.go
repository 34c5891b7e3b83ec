//go:build !unix

package postgres

import "net"

// alive is not known before the connection is used.
func alive(net.Conn) bool { return true }
