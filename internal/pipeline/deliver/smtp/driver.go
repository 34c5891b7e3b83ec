package smtp

import (
	"context"
	"crypto/tls"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Driver sends messages to one next hop. It is safe for concurrent use; each
// call of Serve is one connection.
type Driver struct {
	cfg  Config
	tls  *tls.Config
	mode pipelineMode
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver for a valid Config. It opens nothing.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg.withDefaults(), tls: clientTLS(cfg)}
	top := d.cfg.highest()
	d.mode.highest.Store(uint32(top))
	if top < Grouped {
		d.mode.reason = "the configuration allows no more"
	}
	return d
}

// Status says in which mode new connections start, and why.
func (d *Driver) Status() Status {
	return d.mode.status()
}

// Serve opens a connection and sends messages from queue until there are no more
// or ctx ends; see driver.Driver. It opens another one by itself where the
// first was closed in the course of normal work: after MaxMessages, after a
// rest, after a message that was not released, after a step down to a more
// careful mode, and where the peer ended a connection that had been of use.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	s := &session{d: d, queue: queue}
	defer s.returnHeld()
	for {
		c, err := d.dial(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		c.out = s.out // one buffer for all connections of this call
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
			l, err := queue.Next(ctx, true)
			if l == nil {
				return unlessEnded(ctx, err)
			}
			s.held = append(s.held, l)
		}
	}
}

// unlessEnded drops an error that is only the end of ctx.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
