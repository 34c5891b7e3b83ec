package postgres

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// Sync makes all committed transactions survive a crash of the database, also in relaxed durability.
func (db *DB) Sync(ctx context.Context) error {
	if db.options.Durability == store.Fsync { // they do
		return nil
	}
	return db.SyncAll(ctx)
}

// SyncAll does so by a synchronous commit, which writes all earlier commits to the disk: PostgreSQL has one log.
func (db *DB) SyncAll(ctx context.Context) error {
	return db.admin(ctx, db.options.StatementTimeout, func(ctx context.Context, a *admin) error {
		_, err := a.conn.Exec(ctx, "BEGIN; SET LOCAL synchronous_commit = on; UPDATE meta SET value = value WHERE name = 'identity'; COMMIT")
		return err
	})
}
