package deliveries

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Moment is a snapshot of a day, so that related reads lock the database only once. It is valid until the function that
// received it returns. Its methods read many rows in one call and visit them in the order of the arguments; visit must not
// call methods of the Moment.
type Moment struct {
	day fanfare.Day
	in  store.Session
}

// A Span is the positions [From, To) of a manifest.
type Span struct {
	Manifest fanfare.ManifestID
	From, To uint32
}

// Moment runs fn on one moment of a day. One of a few connections is taken for
// as long, so fn must not wait for anything.
func (s *Store) Moment(ctx context.Context, of fanfare.Day, fn func(*Moment) error) error {
	return s.snapshot(ctx, of, func(in store.Session) error { return fn(&Moment{of, in}) })
}

// once is Moment for a single query, which needs no transaction around it.
func (s *Store) once(ctx context.Context, of fanfare.Day, fn func(*Moment) error) error {
	return s.read(ctx, of, func(in store.Session) error { return fn(&Moment{of, in}) })
}

// Manifests reads manifests. It returns NotFound if an id does not exist, and a DamagedError for a manifest that is damaged.
func (m *Moment) Manifests(ids []fanfare.ManifestID, visit func(*fanfare.Manifest)) error {
	return eachOf(m.in, "manifest", ids, func(id fanfare.ManifestID, r store.Row) error {
		manifest, err := decodeManifest(m.day, id, r.Bytes(0))
		if err == nil {
			visit(&manifest)
		}
		return err
	}, func(id fanfare.ManifestID) error {
		return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("manifest %x was not found on day %s", uint64(id), m.day)}
	})
}

// Posted reads events as they were accepted. It returns NotFound if a sequence number does not exist, and a DamagedError for an event that is damaged.
func (m *Moment) Posted(seqs []fanfare.EventSeq, visit func(*fanfare.AcceptedEvent)) error {
	return eachOf(m.in, "posted", seqs, func(seq fanfare.EventSeq, r store.Row) error {
		posted := &fanfare.AcceptedEvent{Seq: seq}
		err := decodePosted(fanfare.EventRef{Day: m.day, Seq: seq}, r.Bytes(0), posted)
		if err == nil {
			visit(posted)
		}
		return err
	}, func(seq fanfare.EventSeq) error { return unknownEvent(fanfare.EventRef{Day: m.day, Seq: seq}) })
}

// eachOf reads the row that a statement returns for each key. At the first key without a row it stops and returns the
// error of missing.
func eachOf[K ~uint64](in store.Session, statement string, keys []K, row func(K, store.Row) error, missing func(K) error) error {
	found := 0
	err := in.EachOf(statement, len(keys), func(i int) []any { return []any{int64(keys[i])} }, func(i int, r store.Row) error {
		if i > found {
			return missing(keys[found])
		}
		found++
		return row(keys[i], r)
	})
	if err == nil && found < len(keys) {
		err = missing(keys[found])
	}
	return err
}

// Latest reads the newest entries of spans and skips positions without an entry. It passes the number of the span to
// visit.
func (m *Moment) Latest(spans []Span, visit func(span int, position uint32, attempt uint16, state fanfare.State)) error {
	type latest struct {
		span     int
		position uint32
		attempt  uint16
		state    fanfare.State
	}
	var last latest
	seen := false
	err := m.in.EachOf("latest", len(spans), func(i int) []any {
		return []any{int64(spans[i].Manifest), int64(spans[i].From), int64(spans[i].To)}
	}, func(i int, r store.Row) error {
		next := latest{i, uint32(r.Int64(0)), uint16(r.Int64(1)), fanfare.State(r.Int64(2))}
		if seen && (next.span != last.span || next.position != last.position) {
			visit(last.span, last.position, last.attempt, last.state)
		}
		last, seen = next, true
		return nil
	})
	if err == nil && seen {
		visit(last.span, last.position, last.attempt, last.state)
	}
	return err
}

// Entries reads the newest recorded entries of spans and skips positions without one. An
// entry is valid until visit returns.
func (m *Moment) Entries(spans []Span, visit func(span int, e *fanfare.Entry)) error {
	var last fanfare.Entry
	of := -1
	err := m.in.EachOf("attempts", len(spans), func(i int) []any {
		return []any{int64(spans[i].Manifest), int64(spans[i].From), int64(spans[i].To)}
	}, func(i int, r store.Row) error {
		next := entryAt(r, fanfare.DeliveryRef{Day: m.day, Manifest: spans[i].Manifest})
		if of >= 0 && (of != i || next.Delivery != last.Delivery) {
			visit(of, &last)
		}
		last, of = next, i
		return nil
	})
	if err == nil && of >= 0 {
		visit(of, &last)
	}
	return err
}

// Manifest is that of a Moment of its own, and so are Posted and Latest.
func (s *Store) Manifest(ctx context.Context, of fanfare.Day, id fanfare.ManifestID) (manifest *fanfare.Manifest, err error) {
	err = s.once(ctx, of, func(m *Moment) error {
		return m.Manifests([]fanfare.ManifestID{id}, func(found *fanfare.Manifest) { manifest = found })
	})
	return manifest, err
}

// Posted reads an event as it was accepted.
func (s *Store) Posted(ctx context.Context, ref fanfare.EventRef) (posted *fanfare.AcceptedEvent, err error) {
	err = s.once(ctx, ref.Day, func(m *Moment) error {
		return m.Posted([]fanfare.EventSeq{ref.Seq}, func(found *fanfare.AcceptedEvent) { posted = found })
	})
	return posted, err
}

// Latest reads the newest entries of the positions [from, to) of a manifest.
func (s *Store) Latest(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(position uint32, attempt uint16, state fanfare.State)) error {
	return s.once(ctx, of, func(m *Moment) error {
		return m.Latest([]Span{{manifest, from, to}}, func(_ int, position uint32, attempt uint16, state fanfare.State) {
			visit(position, attempt, state)
		})
	})
}
