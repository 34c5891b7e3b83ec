package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// HastenDestination makes the postponed messages of a day to a destination of a channel due at
// once. Messages that wait for their next attempt keep their time.
func (s *Store) HastenDestination(ctx context.Context, of fanfare.Day, channel uint16, destination string) error {
	return s.write(ctx, of, func(in store.Session) error {
		if err := in.Run("due_hasten_destination", int64(channel), destination); err != nil {
			return err
		}
		return in.Run("due_hastened_destination", int64(channel), destination)
	})
}

// DestinationWaits are the messages of a channel that were put off on a day for
// their destinations, by name. They are counted one by one.
func (s *Store) DestinationWaits(ctx context.Context, of fanfare.Day, channel uint16) (waits []fanfare.Waiting, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		waits = nil
		return in.Each("due_destinations", func(r store.Row) error {
			waits = append(waits, fanfare.Waiting{Destination: r.Text(0), Messages: r.Int64(1), Until: second(r.Int64(2))})
			return nil
		}, int64(channel), "")
	})
	return waits, err
}

// Waits visits the members [from, to) of a manifest that were put off without an
// attempt.
func (s *Store) Waits(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(position uint32, w fanfare.Waiting)) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("due_waits", func(r store.Row) error {
			visit(uint32(r.Int64(0)), fanfare.Waiting{For: fanfare.Wait(r.Int64(2)).String(), Until: second(r.Int64(1)), Destination: r.Text(3)})
			return nil
		}, int64(manifest), int64(from), int64(to))
	})
}

// EventWaits counts the postponed deliveries of an event by reason.
func (s *Store) EventWaits(ctx context.Context, ref fanfare.EventRef) (waits []fanfare.Waiting, err error) {
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		waits = nil
		return in.Each("due_waits_of_event", func(r store.Row) error {
			waits = append(waits, fanfare.Waiting{For: fanfare.Wait(r.Int64(0)).String(), Messages: r.Int64(1), Until: second(r.Int64(2)), Last: second(r.Int64(3))})
			return nil
		}, eventManifests(ref.Seq)...)
	})
	return waits, err
}

func second(unix int64) time.Time { return time.Unix(unix, 0).UTC() }
