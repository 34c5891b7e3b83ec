package server

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
)

// startPatience is how long a start waits for an unreachable database, counted from the first failure.
const startPatience = 30 * time.Second

// withDatabase runs start, and repeats it while the database cannot be reached, also if the connection is lost during start: it
// closes everything that start has opened and begins again. The data directory is then in the same state as after a kill at that point.
func (s *Server) withDatabase(ctx context.Context, start func() error) error {
	opened := len(s.cleanups)
	var first time.Time // start of the outage
	where := postgres.Describe(s.config.DB)
	if !s.config.SQLite() {
		s.api.Starting("the database " + where + " since " + s.clock.Now().UTC().Format(time.RFC3339))
	}
	for {
		err := start()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // err can then be any error
			return ctx.Err()
		case !s.databaseLost(err):
			return err
		}
		now := s.clock.Now()
		if first.IsZero() {
			first = now
		}
		left := startPatience - now.Sub(first)
		if left <= 0 {
			return database.Located(where, err)
		}
		s.api.Starting("the database " + where + " since " + first.UTC().Format(time.RFC3339) + "; the last try failed: " + postgres.OneLine(err))
		s.log.Warn("the server is waiting for the database", "database", where, "error", err, "at_most", left.Round(time.Second).String())
		if err := s.cleanUp(opened, stopPatience); err != nil {
			s.log.Debug("a component could not be closed", "error", err)
		}
		s.outage, s.giveUp = nil, nil
		if err := retry.Sleep(ctx, retry.Pause); err != nil {
			return err
		}
	}
}

// databaseLost reports whether a start failed because the database cannot be reached. Some components then return only the
// code Unavailable.
func (s *Server) databaseLost(err error) bool {
	return retry.IsAway(err) || fanfare.CodeOf(err) == fanfare.Unavailable && s.outage.Active()
}

// watch reports outages of the database, and allows a stop to abort calls that wait for it.
func (s *Server) watch(db *database.DB) {
	s.outage = database.NewOutage(db, s.clock)
	s.giveUp = func() error {
		if db.Postgres() == nil {
			return nil
		}
		return db.Close()
	}
	s.background(s.outage.Run)
}
