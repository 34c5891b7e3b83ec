// Package deliveries stores the record of events and deliveries by day of receipt. The part of a
// day holds everything that its events caused, including retries on later days. So an outcome and
// its consequences commit together, and retention removes whole parts.
//
// State. The package has no state besides the database, except for runs of the history that could
// not be written completely. It reads only committed data.
//
// Failure. A method stores everything that it is given, or nothing. The caller may repeat events,
// outcomes and due work after an error whose effect is unknown: existing rows stay as they are.
package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Store is the record of deliveries. Its methods are safe for concurrent use. They return NotFound for a day without data.
type Store struct {
	db      store.Database
	remains remains
}

// New returns the record of deliveries in a database.
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

// begin is write for a transaction that may be the first of its day. It creates the day.
func (s *Store) begin(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, true)
	if err != nil {
		return err
	}
	return day.Write(ctx, fn)
}

// read runs fn. Each statement sees everything that was committed before it.
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

// LastCompletion returns when the last broadcast of a day was completed, or the zero time if none was.
func (s *Store) LastCompletion(ctx context.Context, of fanfare.Day) (at time.Time, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		return in.Each("last_completion", func(r store.Row) error {
			at = timeAt(r.Int64(0))
			return nil
		})
	})
	return at, err
}
