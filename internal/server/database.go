package server

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// A database is what everything is kept in: files of the data directory, or a
// PostgreSQL. A move puts another one in its place.
type database struct {
	*move.Switch
	now atomic.Pointer[opened]
}

// opened is one that was opened.
type opened struct {
	move.Side
	remote *postgres.DB // nil with files
	about  postgres.About
}

// pair is what a data directory remembers of it.
func (o *opened) pair() pair { return pair{Identity: o.about.Identity, Database: o.about.Where} }

func newDatabase(first *opened) *database {
	d := &database{Switch: move.NewSwitch(first.Side)}
	d.now.Store(first)
	return d
}

// remote is the PostgreSQL, nil with files.
func (d *database) remote() *postgres.DB { return d.now.Load().remote }

func (d *database) about() postgres.About { return d.now.Load().about }

// Away tells since when it cannot be reached, and why. Files always can.
func (d *database) Away() (since time.Time, why error) {
	if remote := d.remote(); remote != nil {
		return remote.Away()
	}
	return time.Time{}, nil
}

const (
	// answerPatience is for how long a change waits for a database that does not
	// answer.
	answerPatience = 5 * time.Second
	// requestPatience is for how long at most a stop waits for requests under way before
	// it closes what they use.
	requestPatience = 5 * time.Second
	// stopPatience is for how long, after drain_timeout, a stop waits for a
	// database that is away.
	stopPatience = 5 * time.Second
)

// openDatabase opens what the configuration names.
func (a *App) openDatabase(ctx context.Context, version string) (*database, error) {
	first, err := a.openFirst(ctx, version)
	if err != nil {
		return nil, err
	}
	if err := move.CheckStart(ctx, first.Side); err != nil {
		return nil, errors.Join(err, first.DB.Close())
	}
	return newDatabase(first), nil
}

func (a *App) openFirst(ctx context.Context, version string) (*opened, error) {
	if a.config.SQLite() {
		if err := unpaired(a.config.DataDir); err != nil {
			return nil, err
		}
		return openFiles(ctx, a.config.DataDir, store.Durability(a.config.Durability))
	}
	where := postgres.Describe(a.config.DB)
	options := databaseOptions(&a.config, version)
	options.Logger = a.log
	db, err := postgres.Open(ctx, a.config.DB, options)
	switch {
	case retry.IsAway(err):
		return nil, err // it is waited for
	case err != nil:
		return nil, located(where, err)
	}
	return learn(ctx, db, where)
}

// openFiles opens the files of a data directory.
func openFiles(ctx context.Context, dir string, durability store.Durability) (*opened, error) {
	name, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, dir, durability)
	if err != nil {
		return nil, err
	}
	return &opened{Side: move.Side{DB: db, Name: name}, about: postgres.About{Where: "sqlite"}}, nil
}

// learn asks a PostgreSQL what it is.
func learn(ctx context.Context, db *postgres.DB, name string) (*opened, error) {
	about, err := db.About(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &opened{Side: move.Side{DB: db, Name: name}, remote: db, about: about}, nil
}

// watch looks whether the database is away, where it can be.
func (a *App) watch(db *database) {
	a.absence = &absence{of: db, clock: a.clock}
	a.giveUp = func() error {
		if db.remote() == nil {
			return nil
		}
		return db.Close()
	}
	a.background(a.absence.run)
}

// patience is how long a change waits for a database that does not answer.
func (d *database) patience() time.Duration {
	if d.remote() == nil {
		return 0
	}
	return answerPatience
}

// belong makes sure that the database and a data directory belong together.
func (d *database) belong(dir string, people *registry.Registry, restored bool) error {
	if d.remote() == nil {
		return nil
	}
	return belong(dir, d.now.Load().pair(), func(secret string) bool {
		who, known := people.Authenticate(secret)
		return known && who.Operator() || restored && len(people.Keys("")) > 0 // admin.key is not in a backup; but a backup has keys
	})
}

// databaseOptions are those of a PostgreSQL.
func databaseOptions(c *config.Config, version string) postgres.Options {
	return postgres.Options{Durability: store.Durability(c.Durability), ApplicationName: "fanfare " + version,
		ReadURL: c.DBReads, MaxConnections: c.DBConnections, StatementTimeout: c.DBStatementTimeout}
}

// OwnSchema is the URL of a schema of a PostgreSQL for somebody who works there
// for a while, and DropSchema removes all that was kept in it.
func OwnSchema(url, name string) (string, error) { return postgres.InSchema(url, name) }

// DropSchema removes what a server kept where a URL leads.
func DropSchema(ctx context.Context, url string) error { return postgres.Drop(ctx, url) }
