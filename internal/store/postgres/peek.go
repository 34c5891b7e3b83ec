package postgres

import (
	"context"
	"errors"
	"io/fs"

	"fanfare.dev/fanfare/internal/store"
)

// Peek reads the control part of a database without changing it; a server may use the database at the same time. It
// returns fs.ErrNotExist if the database has no schema yet.
func Peek(ctx context.Context, url string, fn func(store.Session) error) error {
	return withReadOnly(ctx, url, use{1, true, lookTimeout}, func(db *DB) error { return db.Control().Read(ctx, fn) })
}

// withReadOnly calls fn with a database that it can only read. It returns fs.ErrNotExist if the database has no schema yet.
func withReadOnly(ctx context.Context, url string, by use, fn func(*DB) error) (err error) {
	facts, err := Look(ctx, url)
	if err != nil {
		return err
	}
	if facts.SchemaSeen == 0 {
		return fs.ErrNotExist
	}
	options, err := Options{ApplicationName: "fanfare doctor"}.withDefaults()
	if err != nil {
		return err
	}
	db := newDB(options)
	if db.reading, err = db.pool(ctx, url, by); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}
