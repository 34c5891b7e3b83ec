// Package control stores the configuration and the subscribers in the control part of a database.
// It has the records and the statements that read and write them. The registry, the notifier and
// the bounce handling use it.
//
// A commit is durable, and it stores all of a batch or nothing. The store can be used after an
// error of the database. The tables have no index other than the place: the registry keeps the
// indexes by address and by id in memory and loads them at start.
package control

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Store reads and writes the control part of a database. The owner of the database closes it.
type Store struct{ part store.Part }

// New returns the control store of a database.
func New(db store.Database) *Store { return &Store{db.Control()} }

// Scrub removes names, given in lower case, from all of the database except current rows.
func (s *Store) Scrub(names [][]byte) error { return s.part.Scrub(context.Background(), names) }

// UserError returns the error for users of err: the *fanfare.Error that it wraps, else one with the
// given message.
func UserError(err error, message string) error {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Message: message, Hint: "the log of the server has the cause"}
}
