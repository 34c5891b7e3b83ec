package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// A DB is the database of the server: SQLite files in the data directory, or a PostgreSQL. A move replaces it.
type DB struct {
	*move.Switch
	current atomic.Pointer[Side]
}

// A Side is an open database, as one side of a move.
type Side struct {
	move.Side
	remote *postgres.DB // nil for SQLite files
	about  postgres.About
}

// Remote reports whether the side is a PostgreSQL.
func (s *Side) Remote() bool { return s.remote != nil }

// About returns the version, identity and place of the database.
func (s *Side) About() postgres.About { return s.about }

// Pairing returns what the data directory stores about the database.
func (s *Side) Pairing() Pairing { return Pairing{Identity: s.about.Identity, Database: s.about.Where} }

func newDB(first *Side) *DB {
	d := &DB{Switch: move.NewSwitch(first.Side)}
	d.current.Store(first)
	return d
}

// Sync makes the committed transactions of the control part survive a loss of power, also in durability relaxed.
func (d *DB) Sync(ctx context.Context) error {
	return d.Current().DB.(interface{ Sync(context.Context) error }).Sync(ctx)
}

// SyncAll makes all committed transactions survive a loss of power, also in durability relaxed.
func (d *DB) SyncAll(ctx context.Context) error {
	return d.Current().DB.(interface{ SyncAll(context.Context) error }).SyncAll(ctx)
}

// Current returns the database in use.
func (d *DB) Current() *Side { return d.current.Load() }

// Replace makes another database the current one, and returns the previous one.
func (d *DB) Replace(with *Side) (previous *Side) { return d.current.Swap(with) }

// Postgres returns the PostgreSQL in use, or nil for SQLite files.
func (d *DB) Postgres() *postgres.DB { return d.current.Load().remote }

// About returns the version, identity and place of the current database.
func (d *DB) About() postgres.About { return d.current.Load().about }

// Away returns since when the database cannot be reached, and why. It returns the zero time while the database can be reached, and always for
// SQLite files.
func (d *DB) Away() (since time.Time, why error) {
	if remote := d.Postgres(); remote != nil {
		return remote.Away()
	}
	return time.Time{}, nil
}

// writePatience is how long a change waits for a database that does not answer.
const writePatience = 5 * time.Second

// Open opens the database that the configuration names. version is the version of the program.
func Open(ctx context.Context, c *config.Config, version string, log *slog.Logger) (*DB, error) {
	return OpenUnder(ctx, nil, c, version, log)
}

// OpenCluster opens the tables that the nodes of a cluster share.
func OpenCluster(ctx context.Context, c *config.Config, version string, log *slog.Logger) (*postgres.Cluster, error) {
	tables, err := postgres.OpenCluster(ctx, c.DB, postgresOptions(c, version, log))
	if err == nil || retry.IsAway(err) {
		return tables, err
	}
	return nil, Located(postgres.Describe(c.DB), err)
}

// OpenShared opens the database for a node of a cluster that does not need the lease, because it uses the mailboxes only. The error is Unavailable while
// the schema is not up to date. The database has half of the connections of db_connections. replaced is closed when the node must open it again.
func OpenShared(ctx context.Context, c *config.Config, version string, log *slog.Logger) (db store.Database, replaced <-chan struct{}, err error) {
	options := postgresOptions(c, version, log)
	options.Node, options.ReadURL = c.Node, ""
	if options.MaxConnections > 0 {
		options.MaxConnections = max(options.MaxConnections/2, leastShared)
	}
	opened, err := postgres.Open(ctx, c.DB, options)
	if err != nil {
		return nil, nil, Located(postgres.Describe(c.DB), err)
	}
	return opened, opened.Replaced(), nil
}

// leastShared is the least number of connections of OpenShared.
const leastShared = 4

// OpenUnder is Open for a node of a cluster that holds a lease; nil for a server that is alone.
func OpenUnder(ctx context.Context, lease *postgres.NodeLease, c *config.Config, version string, log *slog.Logger) (*DB, error) {
	first, err := openConfigured(ctx, lease, c, version, log)
	if err != nil {
		return nil, err
	}
	if err := move.CheckStart(ctx, first.Side); err != nil {
		return nil, errors.Join(err, first.DB.Close())
	}
	return newDB(first), nil
}

func openConfigured(ctx context.Context, lease *postgres.NodeLease, c *config.Config, version string, log *slog.Logger) (*Side, error) {
	if c.SQLite() {
		if err := CheckUnpaired(c.DataDir); err != nil {
			return nil, err
		}
		return OpenFiles(ctx, c.DataDir, store.Durability(c.Durability))
	}
	where := postgres.Describe(c.DB)
	options := postgresOptions(c, version, log)
	options.Lease = lease
	db, err := postgres.Open(ctx, c.DB, options)
	switch {
	case retry.IsAway(err):
		return nil, err // the start waits for it
	case err != nil:
		return nil, Located(where, err)
	}
	return newSide(ctx, db, where)
}

// OpenFiles opens the SQLite files of a data directory.
func OpenFiles(ctx context.Context, dir string, durability store.Durability) (*Side, error) {
	name, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, dir, durability)
	if err != nil {
		return nil, err
	}
	return &Side{Side: move.Side{DB: db, Name: name}, about: postgres.About{Where: "sqlite"}}, nil
}

// newSide asks a PostgreSQL for its version and identity.
func newSide(ctx context.Context, db *postgres.DB, name string) (*Side, error) {
	about, err := db.About(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Side{Side: move.Side{DB: db, Name: name}, remote: db, about: about}, nil
}

// Files is the place that stands for the SQLite files of the data directory.
const Files = "sqlite"

// OpenTarget opens the target of a move: Files, or the URL of a PostgreSQL.
func OpenTarget(ctx context.Context, to string, c *config.Config, version string, log *slog.Logger) (*Side, error) {
	if to == Files {
		return OpenFiles(ctx, c.DataDir, store.Durability(c.Durability))
	}
	if err := checkURL(to); err != nil {
		return nil, err
	}
	of := *c
	of.DB, of.DBReads = to, ""
	where := postgres.Describe(to)
	db, err := postgres.Open(ctx, to, postgresOptions(&of, version, log))
	if err != nil {
		err = Located(where, err)
		if e, ok := errors.AsType[*fanfare.Error](err); ok {
			e.Pointer = "/to"
		}
		return nil, err
	}
	return newSide(ctx, db, where)
}

// checkURL refuses text that is not the URL of a PostgreSQL. The error does not show it, because it may contain a
// password.
func checkURL(to string) error {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/to", Message: "must be sqlite or the URL of a PostgreSQL database", Hint: "use sqlite, or postgres://user@host/database"}
	}
	return nil
}

// Located adds to an error the database that it concerns. It keeps the whole error chain in the message, because the log contains no other
// trace of it.
func Located(where string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return fmt.Errorf("database %s: %w", where, err)
	}
	text := err.Error()
	if text == e.Error() {
		text = e.Message // the hint follows
	}
	return &fanfare.Error{Code: e.Code, Pointer: "/db", Message: where + ": " + text, Hint: e.Hint}
}

// Patience is how long a change waits for a database that does not answer; 0 for files.
func (d *DB) Patience() time.Duration {
	if d.Postgres() == nil {
		return 0
	}
	return writePatience
}

// CheckPairing makes sure that the database and a data directory belong together. knowsKey reports whether a secret
// is an admin key that the database knows.
func (d *DB) CheckPairing(dir string, knowsKey func(secret string) bool) error {
	if d.Postgres() == nil {
		return nil
	}
	return checkPairing(dir, d.Current().Pairing(), knowsKey)
}

func postgresOptions(c *config.Config, version string, log *slog.Logger) postgres.Options {
	return postgres.Options{Logger: log, Durability: store.Durability(c.Durability), ApplicationName: "fanfare " + version,
		ReadURL: c.DBReads, MaxConnections: c.DBConnections, StatementTimeout: c.DBStatementTimeout}
}

// OwnSchema returns the URL of a schema of a PostgreSQL for temporary use, and DropSchema removes what was stored
// in it.
func OwnSchema(url, name string) (string, error) { return postgres.InSchema(url, name) }

// DropSchema removes what a server stored in the schema of a URL.
func DropSchema(ctx context.Context, url string) error { return postgres.Drop(ctx, url) }
