package postgres

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A day is a day that has tables.
type day struct {
	known   catalog
	leaving atomic.Bool // its removal has begun or is complete
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
	return &part{db, &of, d.known, db.recording, readers, d, scrubTables(&of)}, nil
}

// day finds a day, or creates it. Days are created one at a time. A caller that waits gives up when ctx ends; callers that
// need other days or a list do not wait.
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
	if d := db.kept(of); d != nil { // created by the caller that we waited for
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

// keep registers a day that has tables.
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

// RemoveDay drops the tables of a day with all their rows. A transaction that reads them delays the removal and may make
// it fail, but it does not affect transactions on other days.
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

// restore recreates the tables of a day that disappeared: after a failover to a standby that had not received them, or
// because an operator dropped them. It reports whether empty tables exist now.
func (p *part) restore(ctx context.Context) (bool, error) {
	if p.kept.leaving.Load() {
		return false, nil
	}
	if err := p.db.makeDay(ctx, *p.day); err != nil {
		return false, err
	}
	p.db.log.Warn("the tables of a day were missing although the server had not removed them, and were created again; data may have been lost in a failover to a standby that was behind", "day", p.day.String())
	return true, nil
}
