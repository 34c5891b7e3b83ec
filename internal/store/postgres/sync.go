package postgres

import "context"

// Sync makes all committed transactions survive a crash of the database, also in relaxed durability: a synchronous commit
// writes all earlier commits to the disk.
func (db *DB) Sync(ctx context.Context) error {
	return db.admin(ctx, db.options.StatementTimeout, func(ctx context.Context, a *admin) error {
		_, err := a.conn.Exec(ctx, "BEGIN; SET LOCAL synchronous_commit = on; UPDATE meta SET value = value WHERE name = 'identity'; COMMIT")
		return err
	})
}

// SyncAll is Sync: PostgreSQL has one log.
func (db *DB) SyncAll(ctx context.Context) error { return db.Sync(ctx) }
