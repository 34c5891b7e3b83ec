package postgres

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A day that is kept.
type day struct {
	known   catalog
	leaving atomic.Bool // it is being removed, or was
	removed atomic.Bool
}

// Day is the part of one day's tables.
func (db *DB) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	return db.dayPart(ctx, of, create, db.reading)
}

func (db *DB) dayPart(ctx context.Context, of fanfare.Day, create bool, readers ...*pgxpool.Pool) (store.Part, error) {
	if db.isClosed() {
		return nil, errClosed
	}
	d, err := db.day(ctx, of, create)
	if err != nil {
		return nil, err
	}
	return &part{db, &of, d.known, db.recording, readers, d}, nil
}

// day finds a day, or makes it. One is made at a time: who waits for it gives up
// with ctx, and who asks for others, or for a list, does not wait.
func (db *DB) day(ctx context.Context, of fanfare.Day, create bool) (*day, error) {
	if d := db.kept(of); d != nil {
		return d, nil
	}
	if !create {
		return nil, unknownDay(of)
	}
	select {
	case db.making <- struct{}{}:
		defer func() { <-db.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := db.kept(of); d != nil { // by whom we waited for
		return d, nil
	}
	if err := db.makeDay(ctx, of); err != nil {
		return nil, err
	}
	return db.keep(of), nil
}

func (db *DB) makeDay(ctx context.Context, of fanfare.Day) error {
	return db.admin(ctx, db.options.StatementTimeout, func(ctx context.Context, a *admin) error { return createDay(ctx, a.conn, of) })
}

func (db *DB) kept(of fanfare.Day) *day {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.days[of]
}

// keep makes a day known that has tables.
func (db *DB) keep(of fanfare.Day) *day {
	d := &day{known: newDayCatalog(of, db.dayStatements)}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.days[of] = d
	return d
}

// Days lists the days that have tables, newest first.
func (db *DB) Days(context.Context) ([]fanfare.Day, error) {
	if db.isClosed() {
		return nil, errClosed
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	days := make([]fanfare.Day, 0, len(db.days))
	for of := range db.days {
		days = append(days, of)
	}
	slices.SortFunc(days, func(a, b fanfare.Day) int { return int(b - a) })
	return days, nil
}

// RemoveDay drops the tables of a day, and all that they hold. Somebody who looks
// at them holds that up, and may have it fail, but nobody who is about another day.
func (db *DB) RemoveDay(ctx context.Context, of fanfare.Day) error {
	if db.isClosed() {
		return errClosed
	}
	d := db.kept(of)
	if d != nil {
		d.leaving.Store(true)
	}
	err := db.admin(ctx, db.options.StatementTimeout, func(ctx context.Context, a *admin) error { return removeDay(ctx, a.conn, of) })
	if err != nil {
		if d != nil {
			d.leaving.Store(false)
		}
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if d != nil {
		d.removed.Store(true)
	}
	if db.days[of] == d {
		delete(db.days, of)
	}
	return nil
}

// restore makes the tables of a day anew that somebody else has taken away: a
// failover to a standby that had not heard of them yet, or an operator. It
// reports whether there are tables now, which are empty.
func (p *part) restore(ctx context.Context) (bool, error) {
	if p.kept.leaving.Load() {
		return false, nil
	}
	if err := p.db.makeDay(ctx, *p.day); err != nil {
		return false, err
	}
	p.db.log.Warn("the tables of a day were gone, though the server had not removed them, and are made anew: a failover loses what the standby did not have yet", "day", p.day.String())
	return true, nil
}
