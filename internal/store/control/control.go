// Package control keeps the registry: what people configure and subscribe to, in
// the control part of a database.
//
// What a commit keeps is kept as a whole or not at all, durably, and the store
// is usable after an error of the database. The tables have no other index than
// the place: what finds a row by address or id lies in the registry's memory, and
// is loaded at start.
package control

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// Store satisfies registry.Store. It holds nothing of its own: who opened the
// database closes it.
type Store struct{ part store.Part }

// New returns the store in a database.
func New(db store.Database) *Store { return &Store{db.Control()} }

// Scrub makes sure that names, in lower case, are nowhere in the database but in
// rows that are kept.
func (s *Store) Scrub(names [][]byte) error { return s.part.Scrub(context.Background(), names) }
