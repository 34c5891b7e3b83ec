// Package control stores the configuration and the subscribers in the control part of a database. It defines the records, and its statements
// read and write them. The registry, the notifier and the bounce handling use it.
//
// A commit stores a whole batch or nothing, and it is durable. The store can be used after a database error. The tables have no index except
// the place: the registry loads them at start and keeps the indexes by address and by id in memory.
package control

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Store reads and writes the control part of a database. The owner of the database closes it.
type Store struct {
	part store.Part
	sync func(context.Context) error // makes what was committed survive a loss of power; nil: it does
}

// New returns the control store of a database.
func New(db store.Database) *Store {
	s := &Store{part: db.Control()}
	if durable, ok := db.(interface{ Sync(context.Context) error }); ok {
		s.sync = durable.Sync
	}
	return s
}

// Scrub removes names, given in lower case, from everything in the database except current rows.
func (s *Store) Scrub(names [][]byte) error { return s.part.Scrub(context.Background(), names) }

// UserError returns the error to show to users: the *fanfare.Error that err wraps, or one with the given message.
func UserError(err error, message string) error {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Message: message, Hint: "see the server log for the cause"}
}
