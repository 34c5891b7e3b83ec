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

// versionTable is the table in which goose records the applied migrations.
const versionTable = "migrations"

// daysVersion is the migration that creates the tables of the days.
const daysVersion = 2

// lockTries is how often, once a second, a server tries to get the lock while another server migrates.
const lockTries = 300

// migrationSettings are the settings of the connection that migrates. A change waits only briefly for its lock, because
// other transactions that need the table would queue behind it. Once it has the lock, it has no time limit.
var migrationSettings = map[string]string{"lock_timeout": "5s", "statement_timeout": "0"}

// migrate brings the schema, which is the first one of search_path, up to date, and creates it if necessary. If two
// servers start at the same time, one waits. It refuses a schema with migrations that this program does not know with
// Conflict, because an older program would write data that the newer one does not expect. On a standby it only checks the
// schema.
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
	defer db.Close() //nolint:errcheck // the migration has succeeded or failed by then
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
		return newer(schema, seen, known)
	case standby && seen < known:
		return &fanfare.Error{Code: fanfare.Conflict,
			Message: fmt.Sprintf("the standby has version %d of the schema %s, but this version of Fanfare requires version %d", seen, schema, known),
			Hint:    "start the server on the primary first: it upgrades the schema"}
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

// errOlder is the error of current for a schema without the newest migrations.
var errOlder = &fanfare.Error{Code: fanfare.Unavailable, Message: "the schema of the database is older than this version of Fanfare", Hint: "the node that leads upgrades it when it has this version"}

// current checks that the schema has exactly the migrations that this program knows.
func current(ctx context.Context, conn *pgx.Conn) error {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return err
	}
	known, err := goose.NumericComponent(files[len(files)-1]) // sorted
	if err != nil {
		return err
	}
	seen, err := seenVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case seen < known:
		return errOlder
	case seen > known:
		return newer("the schema", seen, known)
	}
	return nil
}

// newer is the error for a schema that a newer program has changed.
func newer(schema string, seen, known int64) error {
	return &fanfare.Error{Code: fanfare.Conflict,
		Message: fmt.Sprintf("the database was upgraded by a newer version of Fanfare: %s has schema version %d, and this version of Fanfare supports at most version %d", schema, seen, known),
		Hint:    "start the newer version, or restore a backup from before the upgrade into another database"}
}

// attachDays turns day tables that are not partitions yet into partitions. Before a migration all must be partitions,
// because it reaches the tables of the days through their parent tables.
func attachDays(ctx context.Context, conn *pgx.Conn, all bool) error {
	var left bool
	if _, err := conn.Exec(ctx, "SELECT attach_days()"); err != nil {
		return err
	}
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM days WHERE NOT attached)").Scan(&left)
	if err == nil && left && all {
		err = &fanfare.Error{Code: fanfare.Unavailable, Message: "the schema could not be upgraded: another session is using its tables",
			Hint: "end the other sessions that use these tables (see pg_stat_activity), and start the server again"}
	}
	return err
}

// seenVersion returns the last applied migration, or 0.
func seenVersion(ctx context.Context, conn *pgx.Conn) (seen int64, err error) {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT max(version_id) FROM "+versionTable+" WHERE is_applied").Scan(&seen)
	return seen, err
}

// makeSchema creates the schema if it is missing. A user without the permission needs a schema that somebody else created.
func makeSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL", schema).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
	var told *pgconn.PgError
	if errors.As(err, &told) && told.Code == "23505" { // another server created it first
		return nil
	}
	return err
}

// lockID gives different schemas of a database different migration locks.
func lockID(schema string) int64 {
	h := fnv.New64a()
	h.Write([]byte("fanfare migrations of " + schema))
	return int64(h.Sum64())
}
