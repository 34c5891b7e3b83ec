// Package deliveries is the record of what was sent, kept by day of receipt: a
// day's part of a database holds all that its events set off, retries of later
// days included, so that an outcome and what follows from it commit together,
// and retention is the removal of the part.
//
// State. None beside the database's, but for the runs of the history that could
// not be written to their end; what is read is what was committed.
//
// Failure. A method keeps all of what it is given or nothing. Events, outcomes
// and due work may be given again after an error whose effect is not known: what
// is there already stays as it is.
package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Store is the record. Its methods are safe for concurrent use. Those that are
// asked of a day that has nothing return NotFound.
type Store struct {
	db      store.Database
	remains remains
}

// New returns the record that a database keeps.
func New(db store.Database) *Store { return &Store{db: db} }

// Days lists the days that have something, newest first.
func (s *Store) Days(ctx context.Context) ([]fanfare.Day, error) { return s.db.Days(ctx) }

// Remove removes a day and all it holds.
func (s *Store) Remove(ctx context.Context, of fanfare.Day) error { return s.db.RemoveDay(ctx, of) }

// write runs fn in one transaction of a day that is there.
func (s *Store) write(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	return day.Write(ctx, fn)
}

// begin is write for what may be the first of its day.
func (s *Store) begin(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, true)
	if err != nil {
		return err
	}
	return day.Write(ctx, fn)
}

// read runs fn, whose statements each see what was kept so far.
func (s *Store) read(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	return day.Read(ctx, fn)
}

// snapshot runs fn on one moment of a day.
func (s *Store) snapshot(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	return day.Snapshot(ctx, fn)
}

// number reads the first column of a statement's one row.
func number(in store.Session, statement string, args ...any) (n int64, err error) {
	err = in.Each(statement, func(r store.Row) error {
		n = r.Int64(0)
		return nil
	}, args...)
	return n, err
}

// LastCompletion returns when the last broadcast of a day was completed, the zero time if none
// was.
func (s *Store) LastCompletion(ctx context.Context, of fanfare.Day) (at time.Time, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		return in.Each("last_completion", func(r store.Row) error {
			at = timeAt(r.Int64(0))
			return nil
		})
	})
	return at, err
}
