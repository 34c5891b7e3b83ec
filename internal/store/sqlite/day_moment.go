package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// A Moment is a day's file as it was when Moment was called: what is read
// together takes the locks of the file once. It is valid until the function
// that it was given to returns.
type Moment struct {
	day  fanfare.Day
	conn *sqlite.Conn
}

// Moment runs fn on one moment of a day. One of a few readers is taken for as
// long, so fn must not wait for anything.
func (s *Deliveries) Moment(ctx context.Context, of fanfare.Day, fn func(*Moment) error) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.snapshot(ctx, func(conn *sqlite.Conn) error { return fn(&Moment{of, conn}) })
}

// once is Moment for a single query, which needs no transaction around it.
func (s *Deliveries) once(ctx context.Context, of fanfare.Day, fn func(*Moment) error) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.read(ctx, func(conn *sqlite.Conn) error { return fn(&Moment{of, conn}) })
}

// Manifest reads a manifest.
func (m *Moment) Manifest(id fanfare.ManifestID) (*fanfare.Manifest, error) {
	manifest := &fanfare.Manifest{ID: id}
	found := false
	err := dayQueries.each(m.conn, "manifest", func(stmt *sqlite.Stmt) error {
		found = true
		return manifest.UnmarshalBinary(bytesAt(stmt, 0))
	}, int64(id))
	if err == nil && !found {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no manifest %x on %s", uint64(id), m.day)}
	}
	return manifest, err
}

// Posted reads an event as it was accepted.
func (m *Moment) Posted(seq fanfare.EventSeq) (*fanfare.Posted, error) {
	var posted *fanfare.Posted
	err := dayQueries.each(m.conn, "posted", func(stmt *sqlite.Stmt) error {
		posted = &fanfare.Posted{Seq: seq}
		return json.Unmarshal(bytesAt(stmt, 0), posted)
	}, int64(seq))
	if err == nil && posted == nil {
		err = unknownEvent(fanfare.EventRef{Day: m.day, Seq: seq})
	}
	return posted, err
}

// Latest reads the newest entries of the positions [from, to) of a manifest;
// positions without an entry are left out.
func (m *Moment) Latest(manifest fanfare.ManifestID, from, to uint32, visit func(position uint32, attempt uint16, state fanfare.State)) error {
	type latest struct {
		position uint32
		attempt  uint16
		state    fanfare.State
	}
	var last latest
	seen := false
	err := dayQueries.each(m.conn, "latest", func(stmt *sqlite.Stmt) error {
		row := latest{uint32(stmt.ColumnInt64(0)), uint16(stmt.ColumnInt64(1)), fanfare.State(stmt.ColumnInt64(2))}
		if seen && row.position != last.position {
			visit(last.position, last.attempt, last.state)
		}
		last, seen = row, true
		return nil
	}, int64(manifest), int64(from), int64(to))
	if seen {
		visit(last.position, last.attempt, last.state)
	}
	return err
}

// Manifest is that of a Moment of its own, and so are Posted and Latest.
func (s *Deliveries) Manifest(ctx context.Context, of fanfare.Day, id fanfare.ManifestID) (manifest *fanfare.Manifest, err error) {
	err = s.once(ctx, of, func(m *Moment) error {
		manifest, err = m.Manifest(id)
		return err
	})
	return manifest, err
}

// Posted reads an event as it was accepted.
func (s *Deliveries) Posted(ctx context.Context, ref fanfare.EventRef) (posted *fanfare.Posted, err error) {
	err = s.once(ctx, ref.Day, func(m *Moment) error {
		posted, err = m.Posted(ref.Seq)
		return err
	})
	return posted, err
}

// Latest reads the newest entries of the positions [from, to) of a manifest.
func (s *Deliveries) Latest(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(position uint32, attempt uint16, state fanfare.State)) error {
	return s.once(ctx, of, func(m *Moment) error { return m.Latest(manifest, from, to, visit) })
}
