package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A part has the statements of the control tables, of the sessions, of the mailboxes, or of one day. The control part writes
// with its own connections, so that recording, sessions and mailboxes never wait for an import.
type part struct {
	db       *DB
	day      *fanfare.Day // nil: no day
	known    catalog
	writers  *pgxpool.Pool
	readers  []*pgxpool.Pool // tried in this order
	kept     *day            // nil: no day
	personal []string        // the tables with personal data
}

var _ store.Part = (*part)(nil)

func (p *part) Write(ctx context.Context, fn func(store.Session) error) error {
	retry := retry{db: p.db}
	wary, restored := false, false
	for {
		if err := p.usable(); err != nil {
			return err
		}
		if p.db.outage.silent() {
			return newFailure(away, errSilent)
		}
		err := p.transact(ctx, wary, fn)
		failed, ok := err.(*attemptError) //nolint:errorlint // a wrapped one came from the caller's function
		if !ok {
			return err
		}
		if !wary && isTaken(failed.cause) {
			wary = true
			continue
		}
		of := p.meet(ctx, p.writers, failed.cause)
		if of == unknown && !restored {
			if restored, err = p.restore(ctx); err != nil {
				return err
			}
			if restored {
				continue
			}
		}
		if !retry.again(ctx, of) {
			return p.failure(ctx, of, failed.cause)
		}
	}
}

// Erase is Write: PostgreSQL cannot overwrite a row in place. Scrub removes the old versions.
func (p *part) Erase(ctx context.Context, fn func(store.Session) error) error {
	return p.Write(ctx, fn)
}

func (p *part) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.read(ctx, nil, fn)
}

func (p *part) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.read(ctx, p.db.own.beginSnapshot, fn)
}

// usable returns an error if the part was removed.
func (p *part) usable() error {
	switch {
	case p.db.isClosed():
		return errClosed
	case p.kept != nil && p.kept.removed.Load():
		return unknownDay(*p.day)
	}
	return nil
}

// trouble classifies an error for this part. A missing table of a day means that the day was removed; another missing
// table is an unexpected error.
func (p *part) trouble(err error) trouble {
	of := troubleOf(err)
	if of == unknown && p.day == nil {
		return refused
	}
	return of
}

// meet handles an error of a pooled connection, so that connections that are known to be unusable are not tried again.
func (p *part) meet(ctx context.Context, pool *pgxpool.Pool, err error) trouble {
	of := p.trouble(err)
	switch {
	case leftAlone(ctx, pool):
	case of == away:
		p.db.lost(err)
		pool.Reset()
	case of == standby, of == stale:
		pool.Reset()
	}
	return of
}

// leftAlone reports whether a call ended because its caller was gone, or waited too long for connections that others use.
// Such an error does not indicate a problem of the database.
func leftAlone(ctx context.Context, pool *pgxpool.Pool) bool {
	return errors.Is(ctx.Err(), context.Canceled) || ctx.Err() != nil && pool.Stat().ConstructingConns() == 0
}

// failure returns the final error for the caller.
func (p *part) failure(ctx context.Context, of trouble, cause error) error {
	switch {
	case isSilent(ctx):
		return newFailure(away, errSilent)
	case ctx.Err() != nil:
		return ctx.Err()
	case p.db.isClosed():
		return errClosed
	case of == unknown:
		return unknownDay(*p.day)
	}
	return newFailure(of, cause)
}
