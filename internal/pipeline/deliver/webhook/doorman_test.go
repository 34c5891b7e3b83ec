package webhook

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// A doorman stands between a driver and the machines of a test, so that they can
// be away while their address is known.
type doorman struct{ closed atomic.Bool }

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func (d *doorman) through(_ dial, timeout time.Duration) dial {
	dialer := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.closed.Load() {
			return nil, errors.New("connection refused")
		}
		return dialer.DialContext(ctx, network, address)
	}
}
