package smtp

import (
	"context"
	"crypto/tls"

	fanfare "fanfare.dev/fanfare"
)

// A Driver sends letters to one next hop. It is safe for concurrent use; each
// call of Serve is one connection.
type Driver struct {
	cfg    Config
	tls    *tls.Config
	ladder ladder
}

var _ fanfare.Driver = (*Driver)(nil)

// New returns a driver for a valid Config. It opens nothing.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg.withDefaults(), tls: clientTLS(cfg)}
	top := d.cfg.highest()
	d.ladder.top.Store(uint32(top))
	if top < Grouped {
		d.ladder.reason = "the configuration allows no more"
	}
	return d
}

// Status says in which mode new connections start, and why.
func (d *Driver) Status() Status {
	return d.ladder.status()
}

// Serve opens a connection and sends letters from desk until there are no more
// or ctx ends; see fanfare.Driver. It opens another one by itself where the
// first was closed in the course of normal work: after MaxMessages, after a
// rest, after a letter that was not released, after a step down to a more
// careful mode, and where the peer ended a connection that had been of use.
func (d *Driver) Serve(ctx context.Context, desk fanfare.Desk) error {
	s := &session{d: d, desk: desk}
	s.companions, _ = desk.(fanfare.Companions)
	defer s.giveBackHand()
	for {
		c, err := d.dial(ctx)
		if err != nil {
			return whole(ctx, err)
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
		case over:
			return nil
		case rest:
			l, err := desk.Next(ctx, true)
			if l == nil {
				return whole(ctx, err)
			}
			s.hand = append(s.hand, l)
		}
	}
}

// whole drops an error that is only the end of ctx.
func whole(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
