package deliveries

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// EraseAttempts empties the personal data of attempts of some deliveries: address and reply text. All
// of refs are of one day. The attempts and their states stay.
func (s *Store) EraseAttempts(ctx context.Context, of fanfare.Day, refs []fanfare.DeliveryRef) error {
	return s.erase(ctx, of, func(in store.Session) error {
		for _, ref := range refs {
			if err := in.Run("attempts_forget", int64(ref.Manifest), int64(ref.Position)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReplacePosted replaces the stored form of an accepted event.
func (s *Store) ReplacePosted(ctx context.Context, posted *fanfare.AcceptedEvent) error {
	text, err := encodePosted(posted)
	if err != nil {
		return err
	}
	ref := posted.Ref()
	return s.erase(ctx, ref.Day, func(in store.Session) error { return in.Run("posted_replace", int64(ref.Seq), text) })
}

// ReplaceParked replaces the payload of parked work.
func (s *Store) ReplaceParked(ctx context.Context, id string, payload []byte) error {
	of, row, err := parseParkedID(id)
	if err != nil {
		return err
	}
	return s.erase(ctx, of, func(in store.Session) error {
		seq := int64(0)
		err := in.Each("parked", func(r store.Row) error {
			if r.Int64(0) == row {
				seq = r.Int64(2)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return in.Run("parked_replace", row, checksum.Add(seq, payload))
	})
}

func (s *Store) erase(ctx context.Context, of fanfare.Day, fn func(store.Session) error) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	return day.Erase(ctx, fn)
}

// Scrub removes names, given in lower case, from everything in the part of a day except current rows.
func (s *Store) Scrub(ctx context.Context, of fanfare.Day, names [][]byte) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	return day.Scrub(ctx, names)
}
