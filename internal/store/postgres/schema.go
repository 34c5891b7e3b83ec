package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"fanfare.dev/fanfare"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// versionTable is where goose keeps which migrations were run.
const versionTable = "migrations"

// daysVersion is the migration that makes the tables of the days.
const daysVersion = 2

// lockTries, a second apart, are how long a server waits for another that
// migrates.
const lockTries = 300

// migrationSettings are those of the connection that migrates: a change waits for
// its lock for a moment only, since who needs the table meanwhile would wait
// behind it; and may then take its time.
var migrationSettings = map[string]string{"lock_timeout": "5s", "statement_timeout": "0"}

// migrate brings the schema up to date, the first time from nothing: it is the
// first of search_path. Where two servers start at the same time one of them
// waits. A schema that has seen more migrations than there are is refused with
// Conflict: an older program would write what the newer one does not expect. A
// standby is only looked at.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	return migrateWith(ctx, conn, files)
}

func migrateWith(ctx context.Context, conn *pgx.Conn, files fs.FS) error {
	var schema string
	var standby bool
	err := conn.QueryRow(ctx, "SELECT (parse_ident(current_setting('search_path'), false))[1], pg_is_in_recovery()").Scan(&schema, &standby)
	if err != nil {
		return err
	}
	config := conn.Config()
	for name, value := range migrationSettings {
		config.RuntimeParams[name] = value
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // what it was for is done or has failed by then
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID(schema)), lock.WithLockTimeout(1, lockTries))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	seen, err := seenVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case seen > known:
		return &fanfare.Error{Code: fanfare.Conflict,
			Message: fmt.Sprintf("the database belongs to a newer Fanfare: %s has schema %d, and this program knows those up to %d", schema, seen, known),
			Hint:    "start the newer program again, or restore a backup from before the upgrade into another database"}
	case standby && seen < known:
		return &fanfare.Error{Code: fanfare.Conflict,
			Message: fmt.Sprintf("the standby has schema %d of %s, and this program needs %d", seen, schema, known),
			Hint:    "start the server on the primary first: it brings the schema up to date"}
	case standby:
		return nil
	}
	if err := makeSchema(ctx, conn, schema); err != nil {
		return err
	}
	if seen >= daysVersion {
		if err := attachDays(ctx, conn, seen < known); err != nil {
			return err
		}
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema %s: %w", schema, err)
	}
	return nil
}

// attachDays makes partitions of the tables of days that are none yet. Where a
// migration is to follow, all have to be: it reaches the tables of the days
// through those that they are partitions of.
func attachDays(ctx context.Context, conn *pgx.Conn, all bool) error {
	var left bool
	if _, err := conn.Exec(ctx, "SELECT attach_days()"); err != nil {
		return err
	}
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM days WHERE NOT attached)").Scan(&left)
	if err == nil && left && all {
		err = &fanfare.Error{Code: fanfare.Unavailable, Message: "the schema could not be brought up to date: somebody is at its tables",
			Hint: "end what others do with the tables of the record (pg_stat_activity shows it) and start again"}
	}
	return err
}

// seenVersion is the last migration that was run, 0 if none was.
func seenVersion(ctx context.Context, conn *pgx.Conn) (seen int64, err error) {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT max(version_id) FROM "+versionTable+" WHERE is_applied").Scan(&seen)
	return seen, err
}

// makeSchema makes the schema if it is missing: who may not, has had it made.
func makeSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL", schema).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
	var told *pgconn.PgError
	if errors.As(err, &told) && told.Code == "23505" { // another server was quicker
		return nil
	}
	return err
}

// lockID keeps the migrations of different schemas of one database apart.
func lockID(schema string) int64 {
	h := fnv.New64a()
	h.Write([]byte("fanfare migrations of " + schema))
	return int64(h.Sum64())
}
