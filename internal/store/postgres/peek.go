package postgres

import (
	"context"
	"errors"
	"io/fs"

	"fanfare.dev/fanfare/internal/store"
)

// Peek reads the control part of a database without changing it; a server may use the database at the same time. It
// returns fs.ErrNotExist if the database has no schema yet.
func Peek(ctx context.Context, url string, fn func(store.Session) error) (err error) {
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
	if db.reading, err = db.pool(ctx, url, use{1, true, lookTimeout}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Control().Read(ctx, fn)
}
