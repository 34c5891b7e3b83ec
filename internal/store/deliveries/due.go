package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// NextDue returns the time of the earliest waiting work of a day, or the zero time without any.
func (s *Store) NextDue(ctx context.Context, of fanfare.Day) (next time.Time, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		return in.Each("due_next", func(r store.Row) error {
			if !r.IsNull(0) {
				next = time.Unix(r.Int64(0), 0).UTC()
			}
			return nil
		})
	})
	return next, err
}

// DueBy reads at most limit pieces of work of a day whose time has come,
// earliest first. They stay until RemoveDue.
func (s *Store) DueBy(ctx context.Context, of fanfare.Day, now time.Time, limit int) (dues []fanfare.Due, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		dues = nil
		return in.Each("due", func(r store.Row) error {
			dues = append(dues, fanfare.Due{
				At:      time.Unix(r.Int64(0), 0).UTC(),
				Channel: uint16(r.Int64(3)),
				Lane:    fanfare.Lane(r.Int64(4)),
				Slice: fanfare.RecipientRange{
					Manifest:  fanfare.ManifestID(r.Int64(1)),
					Attempt:   uint16(r.Int64(5)),
					Positions: readPositions(r.Bytes(6)),
				},
				Why: fanfare.Wait(r.Int64(7)), Destination: r.Text(8),
			})
			return nil
		}, now.Unix(), int64(limit))
	})
	return dues, err
}

// RemoveDue deletes work that was handed on.
func (s *Store) RemoveDue(ctx context.Context, of fanfare.Day, dues []fanfare.Due) error {
	return s.write(ctx, of, func(in store.Session) error {
		for i := range dues {
			due := &dues[i]
			if err := in.Run("due_delete", due.At.Unix(), int64(due.Slice.Manifest),
				int64(due.Slice.Positions[0]), int64(due.Slice.Attempt)); err != nil {
				return err
			}
		}
		return nil
	})
}

// HastenDue makes all work of an event that waits due at once, so that a cancel
// reaches it.
func (s *Store) HastenDue(ctx context.Context, ref fanfare.EventRef) error {
	manifests := eventManifests(ref.Seq)
	return s.write(ctx, ref.Day, func(in store.Session) error {
		if err := in.Run("due_hasten", manifests...); err != nil {
			return err
		}
		return in.Run("due_hastened", manifests...)
	})
}
