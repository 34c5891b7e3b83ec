package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare/internal/store"
)

// A reader is a session that only reads. If a statement fails with its connection, the reader repeats it on another
// connection as long as the caller has seen no row of it or, in a snapshot, no row at all.
type reader struct {
	part  *part
	ctx   context.Context //nolint:containedctx // a session lasts for one call
	begin *statement      // begins a snapshot, or nil

	place int // index of the pool in part.readers
	retry retry
	held  *pgxpool.Conn
	fixed bool // a statement of the snapshot was answered, even without rows: its moment cannot change any more
	*session
}

var _ store.Session = (*reader)(nil)

func (p *part) read(ctx context.Context, begin *statement, fn func(store.Session) error) error {
	if err := p.usable(); err != nil {
		return err
	}
	if p.readers[0] != p.db.standby || p.db.standby == nil { // a standby can be read while the primary cannot be reached
		var stop func()
		ctx, stop = p.db.answering(ctx)
		defer stop()
	}
	r := &reader{part: p, ctx: ctx, begin: begin, retry: retry{db: p.db}}
	defer r.drop()
	return fn(r)
}

func (r *reader) Run(name string, args ...any) error {
	return r.try(func() error {
		err := r.session.Run(name, args...)
		if r.busy != nil {
			return err // the statement was refused, and the next answers belong to another statement
		}
		return firstOf(err, r.settle())
	})
}

func (r *reader) Each(name string, row func(store.Row) error, args ...any) error {
	return r.try(func() error { return r.session.Each(name, row, args...) })
}

func (r *reader) EachOf(name string, n int, args func(int) []any, row func(int, store.Row) error) error {
	return r.try(func() error { return r.session.EachOf(name, n, args, row) })
}

func (r *reader) Insert(name string, _ int, _ func(int, store.Values)) error {
	return fmt.Errorf("statement %q: a read-only session cannot insert rows", name)
}

// try repeats a statement until it is answered.
func (r *reader) try(statement func() error) error {
	for {
		err := r.open()
		if err == nil {
			if err = statement(); err == nil || r.err == nil || !errors.Is(err, r.err) {
				r.fixed = r.begin != nil
				if r.part.readers[r.place] == r.part.db.standby {
					r.part.db.absence.over()
				}
				return err
			}
		}
		of := r.part.trouble(err)
		if of == standby {
			of = refused // programming error: a reader must not write
		}
		final := r.session != nil && (r.visited || r.fixed)
		pool := r.part.readers[r.place]
		r.drop()
		switch {
		case final:
		case isSilent(r.ctx):
		case r.ctx.Err() == nil && r.place < len(r.part.readers)-1:
			if of.gone() {
				r.part.db.absence.begin(err)
			}
			if r.part.db.outage.silent() {
				return r.part.failure(r.ctx, away, errSilent)
			}
			r.place++ // the standby is unreachable, behind or overloaded; the primary has all data
			continue
		case r.retry.again(r.ctx, of):
			r.part.meet(r.ctx, pool, err)
			continue
		}
		return r.part.failure(r.ctx, of, err)
	}
}

// open acquires a connection from the first pool that has not failed.
func (r *reader) open() error {
	if r.session != nil {
		return nil
	}
	held, err := r.part.readers[r.place].Acquire(r.ctx)
	if err != nil {
		return err
	}
	r.held = held
	r.session = &session{conn: connOf(held), known: r.part.known, begin: r.begin, end: r.part.db.own.rollback, limit: r.part.db.options.StatementTimeout + connectTimeout}
	r.session.open(r.ctx)
	return nil
}

// drop releases the connection.
func (r *reader) drop() {
	if r.session == nil {
		return
	}
	if r.begun {
		_ = r.rollback(nil) // if this fails, the connection is not used again
	}
	r.close()
	r.held.Release()
	r.session, r.held = nil, nil
}
