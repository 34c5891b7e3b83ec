package deliveries

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Broadcast reads an event and the progress of its broadcast. The counts are empty until the
// broadcast is completed, because the recorder has them in memory. A damaged event has no data,
// and the damage as its reason.
func (s *Store) Broadcast(ctx context.Context, ref fanfare.EventRef) (broadcast *fanfare.Broadcast, err error) {
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		return in.Each("broadcast", func(r store.Row) error {
			broadcast, err = broadcastAt(r, ref.Day)
			return err
		}, int64(ref.Seq))
	})
	if err == nil && broadcast == nil {
		err = unknownEvent(ref)
	}
	return broadcast, err
}

// EventRange returns the lowest and the highest sequence of the events of a day; 0 if there are none.
func (s *Store) EventRange(ctx context.Context, of fanfare.Day) (first, last fanfare.EventSeq, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		return in.Each("event_range", func(r store.Row) error {
			first, last = fanfare.EventSeq(r.Int64(0)), fanfare.EventSeq(r.Int64(1))
			return nil
		})
	})
	return first, last, err
}

// Broadcasts reads at most limit broadcasts of a day, of one service or of all,
// the newest in [from, before) first.
func (s *Store) Broadcasts(ctx context.Context, of fanfare.Day, service string, from, before fanfare.EventSeq, limit int) (list []*fanfare.Broadcast, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		list = nil
		return in.Each("broadcasts", func(r store.Row) error {
			broadcast, err := broadcastAt(r, of)
			if err != nil {
				return err
			}
			broadcast.Data, broadcast.Binary, broadcast.Reasons = nil, nil, nil
			list = append(list, broadcast)
			return nil
		}, int64(from), int64(before), service, int64(limit))
	})
	return list, err
}

func unknownEvent(ref fanfare.EventRef) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no event %s", ref), Hint: "the event may not have been matched yet, or may be older than the retention period"}
}

func broadcastAt(r store.Row, of fanfare.Day) (broadcast *fanfare.Broadcast, err error) {
	var posted fanfare.AcceptedEvent
	ref := fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(r.Int64(0))}
	damage := decodePosted(ref, r.Bytes(1), &posted)
	b := &fanfare.Broadcast{
		Event:    ref.String(),
		State:    "running",
		Matched:  r.Int64(2),
		Messages: r.Int64(3),
		Stages: fanfare.Stages{
			Kept:    timeAt(r.Int64(4)),
			Matched: timeAt(r.Int64(5)),
			Frozen:  timeAt(r.Int64(6)),
		},
	}
	if damage == nil {
		b.Describe(&posted)
	} else { // the rest of the row is valid, so that an operator can see and cancel it
		b.Service, b.Topic, b.Kind, b.Stages.Received = r.Text(17), r.Text(18), fanfare.KindEvent, b.Stages.Kept
	}
	switch {
	case !r.IsNull(7):
		b.State = "completed"
		if err := json.Unmarshal(r.Bytes(7), &b.Counts); err != nil {
			return nil, err
		}
		b.Stages.First, b.Stages.Last, b.Stages.Completed = timeAt(r.Int64(8)), timeAt(r.Int64(9)), timeAt(r.Int64(10))
		if b.Reasons, err = readReasons(r.Bytes(16)); err != nil {
			return nil, err
		}
	case b.Messages == 0:
		b.State, b.Stages.Completed = "completed", b.Stages.Frozen
	}
	if b.State == "running" && !r.IsNull(13) {
		b.State, b.Reason = fanfare.BroadcastHeld, r.Text(13)
	}
	if !r.IsNull(14) {
		b.ApprovedBy = r.Text(14)
	}
	if !r.IsNull(15) {
		b.RateLimit = r.Text(15)
	}
	if !r.IsNull(11) && (b.State != "completed" || r.Text(11) == "cancelled") {
		b.State, b.Reason = r.Text(11), r.Text(12)
	}
	if damage != nil && b.Reason == "" {
		b.Reason = damage.Error()
	}
	return b, nil
}

// Attempts visits all attempts of the positions [from, to) of a manifest in order.
func (s *Store) Attempts(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(*fanfare.Entry) error) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("attempts", func(r store.Row) error {
			e := entryAt(r, fanfare.DeliveryRef{Day: of, Manifest: manifest})
			return visit(&e)
		}, int64(manifest), int64(from), int64(to))
	})
}

// Unsent returns at most limit positions in [from, to) of a manifest, ascending, whose deliveries are in a state that has a reason.
func (s *Store) Unsent(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, state fanfare.State, from, to uint32, limit int) (positions []uint32, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		positions = nil
		return in.Each("unsent", func(r store.Row) error {
			positions = append(positions, uint32(r.Int64(0)))
			return nil
		}, int64(state), int64(manifest), int64(from), int64(to), int64(limit))
	})
	return positions, err
}

// entryAt reads an entry of a manifest, whose delivery gets its position.
func entryAt(r store.Row, of fanfare.DeliveryRef) fanfare.Entry {
	of.Position = uint32(r.Int64(0))
	return fanfare.Entry{
		Delivery: of,
		Attempt:  uint16(r.Int64(1)),
		State:    fanfare.State(r.Int64(2)),
		Code:     int(r.Int64(3)),
		At:       timeAt(r.Int64(4)),
		NextAt:   timeAt(r.Int64(5)),
		Text:     r.Text(6),
		Relay:    r.Text(7),
		Address:  r.Text(8),
	}
}

// Manifests reads all manifests of an event. There are none if the event is not frozen yet or has no recipients.
func (s *Store) Manifests(ctx context.Context, ref fanfare.EventRef) (manifests []fanfare.Manifest, err error) {
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		manifests = nil
		return in.EachOf("manifests_of_event", 1, func(int) []any { return eventManifests(ref.Seq) }, func(_ int, r store.Row) error {
			m, err := manifestAt(ref.Day, r)
			manifests = append(manifests, m)
			return err
		})
	})
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil, nil
	}
	return manifests, err
}

// ManifestOf reads the manifest of an event that covers a partition, or returns nil.
func (s *Store) ManifestOf(ctx context.Context, ref fanfare.EventRef, partition int) (manifest *fanfare.Manifest, err error) {
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		return in.Each("manifest_of_partition", func(r store.Row) error {
			m, err := manifestAt(ref.Day, r)
			manifest = &m
			return err
		}, int64(fanfare.NewManifestID(ref.Seq, 0)), int64(fanfare.NewManifestID(ref.Seq, partition)))
	})
	return manifest, err
}
