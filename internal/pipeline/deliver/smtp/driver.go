package smtp

import (
	"context"
	"crypto/tls"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Driver sends messages to one next hop. It is safe for concurrent use; each call of
// Serve uses one connection.
type Driver struct {
	cfg  Config
	tls  *tls.Config
	mode pipelineMode
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver for a valid Config. It opens no connection.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg.withDefaults(), tls: clientTLS(cfg)}
	top := d.cfg.highest()
	d.mode.highest.Store(uint32(top))
	if top < Grouped {
		d.mode.reason = "the grouping setting does not permit a faster mode"
	}
	return d
}

// Status returns the mode in which new connections start, and why.
func (d *Driver) Status() Status {
	return d.mode.status()
}

// Serve opens a connection and sends messages from queue until there are no more or ctx
// ends; see driver.Driver. It opens another connection if the first one was closed in
// normal operation: after MaxMessages, after it was idle, after a message that was not
// released, after a change to a slower mode, and if the peer closed a connection that had
// sent messages.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	s := &session{d: d, queue: queue}
	defer s.returnHeld()
	for {
		c, err := d.dial(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		c.out = s.out // all connections of this call share one buffer
		s.conn = c
		next := s.run(ctx)
		if s.out = c.out; cap(s.out) > keepBuffer {
			s.out = nil
		}
		switch next {
		case failed:
			return s.err
		case finished:
			return nil
		case disconnectUntilMessage:
			message, err := queue.Next(ctx, true)
			if message == nil {
				return unlessEnded(ctx, err)
			}
			s.held = append(s.held, message)
		}
	}
}

// unlessEnded returns nil if ctx has ended, and err otherwise.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
