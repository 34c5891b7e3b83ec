package server

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
)

// startPatience is for how long a start waits for a database that cannot be
// reached, from the first time that it could not.
const startPatience = 30 * time.Second

// reach opens what is kept. A database that is away, or is lost while much of it
// was read already, is waited for: what was opened is closed, and opening begins
// anew. What opening leaves in the data directory is what a start that was killed
// there leaves.
func (a *App) reach(ctx context.Context, open func() error) error {
	acquired := len(a.unwind)
	var first time.Time // that it was away
	if !a.config.SQLite() {
		a.server.Starting("the database " + postgres.Describe(a.config.DB) + " since " + a.clock.Now().UTC().Format(time.RFC3339))
	}
	for {
		err := open()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // whatever it was about at that moment
			return ctx.Err()
		case !a.lost(err):
			return err
		}
		now := a.clock.Now()
		if first.IsZero() {
			first = now
		}
		where, left := postgres.Describe(a.config.DB), startPatience-now.Sub(first)
		if left <= 0 {
			return database.Located(where, err)
		}
		a.server.Starting(waitsForDatabase(where, first, err))
		a.log.Warn("the start waits for the database", "database", where, "error", err, "at_most", left.Round(time.Second).String())
		if err := a.undo(acquired, stopPatience); err != nil {
			a.log.Debug("what was open by then did not close in order", "error", err)
		}
		a.outage, a.giveUp = nil, nil
		if err := retry.Sleep(ctx, retry.Pause); err != nil {
			return err
		}
	}
}

// waitsForDatabase says which database a start waits for, since when, and how it failed
// last.
func waitsForDatabase(where string, since time.Time, last error) string {
	return "the database " + where + " since " + since.UTC().Format(time.RFC3339) + "; the last try failed: " + postgres.OneLine(last)
}

// lost reports whether a start failed since the database cannot be reached. Some
// who find it so say no more than that nothing can be kept.
func (a *App) lost(err error) bool {
	if retry.IsAway(err) {
		return true
	}
	return fanfare.CodeOf(err) == fanfare.Unavailable && a.outage.Active()
}

// watch reports an outage of the database, and lets a stop end what waits for it.
func (a *App) watch(db *database.DB) {
	a.outage = database.NewOutage(db, a.clock)
	a.giveUp = func() error {
		if db.Postgres() == nil {
			return nil
		}
		return db.Close()
	}
	a.background(a.outage.Run)
}
