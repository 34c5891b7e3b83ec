package deliveries

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Waiting describes the events of a day that wait for the run of a slot.
type Waiting struct {
	Slot    uint16
	Due     time.Time // whole seconds
	Service string
	Members int64 // number of members of all its events; only Gatherings sets it
}

func (w *Waiting) key() []any { return []any{int64(w.Slot), w.Due.Unix()} }

// gather stores the recipients who get events later, and the runs that they wait for.
func gather(in store.Session, events []*fanfare.MatchResult) error {
	var rows []*fanfare.Gathered
	var waiting []Waiting
	for _, e := range events {
		for i := range e.Gathered {
			g := &e.Gathered[i]
			rows = append(rows, g)
			waiting = append(waiting, Waiting{Slot: g.Slot, Due: g.Due, Service: e.Posted.Service})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := putGathered(in, rows); err != nil {
		return err
	}
	return putPending(in, each(waiting))
}

func putGathered(in store.Session, rows []*fanfare.Gathered) error {
	var failed error
	err := in.Insert("gathered_put", len(rows), func(i int, to store.Values) {
		g := rows[i]
		blob, err := encodeManifest(&g.Manifest)
		if err != nil {
			failed = err
		}
		to.Int64(int64(g.Slot))
		to.Int64(g.Due.Unix())
		to.Int64(int64(g.Manifest.ID))
		to.Int64(int64(g.Manifest.Members()))
		to.Bytes(blob)
	})
	return errors.Join(err, failed)
}

// each visits each run once, in an order that is the same for all writers.
func each(waiting []Waiting) []Waiting {
	slices.SortFunc(waiting, func(a, b Waiting) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Due.Compare(b.Due)) })
	return slices.CompactFunc(waiting, func(a, b Waiting) bool { return a.Slot == b.Slot && a.Due.Equal(b.Due) })
}

func putPending(in store.Session, waiting []Waiting) error {
	return in.Insert("pending_put", len(waiting), func(i int, to store.Values) {
		w := &waiting[i]
		to.Int64(int64(w.Slot))
		to.Int64(w.Due.Unix())
		to.Text(w.Service)
	})
}

// Pending lists the runs that something of a day waits for.
func (s *Store) Pending(ctx context.Context, of fanfare.Day) ([]Waiting, error) {
	return s.waiting(ctx, of, "pending")
}

// Gatherings is Pending with the numbers of members. They are summed one by one.
func (s *Store) Gatherings(ctx context.Context, of fanfare.Day) ([]Waiting, error) {
	return s.waiting(ctx, of, "gathered_waiting")
}

func (s *Store) waiting(ctx context.Context, of fanfare.Day, statement string) (list []Waiting, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		list = nil
		return in.Each(statement, func(r store.Row) error {
			w := Waiting{Slot: uint16(r.Int64(0)), Due: second(r.Int64(1)), Service: r.Text(2)}
			if statement != "pending" {
				w.Members = r.Int64(3)
			}
			list = append(list, w)
			return nil
		})
	})
	return list, err
}

// Await notes runs that something of a day waits for although nothing was gathered
// for them.
func (s *Store) Await(ctx context.Context, of fanfare.Day, runs []Waiting) error {
	return s.begin(ctx, of, func(in store.Session) error { return putPending(in, each(runs)) })
}

// EndAwait removes the note that a day waits for a run.
func (s *Store) EndAwait(ctx context.Context, of fanfare.Day, w Waiting) error {
	return s.write(ctx, of, func(in store.Session) error { return in.Run("pending_delete", w.key()...) })
}

// Gathered visits the manifests of a day that wait for a run, in the order of their ids. visit may keep the manifest.
func (s *Store) Gathered(ctx context.Context, of fanfare.Day, slot uint16, due time.Time, visit func(*fanfare.Manifest) error) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("gathered", func(r store.Row) error {
			m, err := manifestAt(of, r)
			if err != nil {
				return err
			}
			return visit(&m)
		}, int64(slot), due.Unix())
	})
}

// GatheredOf lists the runs that an event waits, or waited, for, with the members
// that it has in each.
func (s *Store) GatheredOf(ctx context.Context, ref fanfare.EventRef) (list []Waiting, err error) {
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		list = nil
		return in.Each("gathered_of_event", func(r store.Row) error {
			list = append(list, Waiting{Slot: uint16(r.Int64(0)), Due: second(r.Int64(1)), Members: r.Int64(2)})
			return nil
		}, eventManifests(ref.Seq)...)
	})
	return list, err
}
