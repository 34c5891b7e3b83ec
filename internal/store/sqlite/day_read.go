package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// Broadcast reads an event and how far what it set off has come. The counts of
// one that is not completed are empty: the recorder has them in memory.
func (s *Deliveries) Broadcast(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	d, err := s.day(ctx, ref.Day, false)
	if err != nil {
		return nil, err
	}
	var broadcast *fanfare.Broadcast
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "broadcast", func(stmt *sqlite.Stmt) error {
			broadcast, err = broadcastAt(stmt, ref.Day)
			return err
		}, int64(ref.Seq))
	})
	if err == nil && broadcast == nil {
		err = unknownEvent(ref)
	}
	return broadcast, err
}

// errEnough ends a query early.
type errEnough struct{}

func (errEnough) Error() string { return "enough rows" }

// Broadcasts reads at most limit broadcasts of a day, of one service or of all,
// the newest before a sequence first.
func (s *Deliveries) Broadcasts(ctx context.Context, of fanfare.Day, service string, before fanfare.EventSeq, limit int) ([]*fanfare.Broadcast, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, err
	}
	var list []*fanfare.Broadcast
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "broadcasts", func(stmt *sqlite.Stmt) error {
			broadcast, err := broadcastAt(stmt, of)
			if err != nil {
				return err
			}
			broadcast.Data, broadcast.Binary = nil, nil
			list = append(list, broadcast)
			if len(list) >= limit {
				return errEnough{}
			}
			return nil
		}, int64(before), service, service)
	})
	if errors.Is(err, errEnough{}) {
		err = nil
	}
	return list, err
}

func broadcastAt(stmt *sqlite.Stmt, of fanfare.Day) (*fanfare.Broadcast, error) {
	var posted fanfare.Posted
	if err := json.Unmarshal(bytesAt(stmt, 1), &posted); err != nil {
		return nil, err
	}
	b := &fanfare.Broadcast{
		Event:    fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(stmt.ColumnInt64(0))}.String(),
		State:    "running",
		Matched:  stmt.ColumnInt64(2),
		Messages: stmt.ColumnInt64(3),
		Stages: fanfare.Stages{
			Kept:    timeAt(stmt.ColumnInt64(4)),
			Matched: timeAt(stmt.ColumnInt64(5)),
			Frozen:  timeAt(stmt.ColumnInt64(6)),
		},
	}
	b.Describe(&posted)
	switch {
	case !stmt.ColumnIsNull(7):
		b.State = "completed"
		if err := json.Unmarshal(bytesAt(stmt, 7), &b.Counts); err != nil {
			return nil, err
		}
		b.Stages.First, b.Stages.Last, b.Stages.Completed = timeAt(stmt.ColumnInt64(8)), timeAt(stmt.ColumnInt64(9)), timeAt(stmt.ColumnInt64(10))
	case b.Messages == 0:
		b.State, b.Stages.Completed = "completed", b.Stages.Frozen
	}
	if !stmt.ColumnIsNull(11) && (b.State != "completed" || stmt.ColumnText(11) == "cancelled") {
		b.State, b.Reason = stmt.ColumnText(11), stmt.ColumnText(12)
	}
	return b, nil
}

// Attempts visits all attempts of the positions [from, to) of a manifest in order.
func (s *Deliveries) Attempts(ctx context.Context, of fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(*fanfare.Entry) error) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "attempts", func(stmt *sqlite.Stmt) error {
			return visit(&fanfare.Entry{
				Delivery: fanfare.DeliveryRef{Day: of, Manifest: manifest, Position: uint32(stmt.ColumnInt64(0))},
				Attempt:  uint16(stmt.ColumnInt64(1)),
				State:    fanfare.State(stmt.ColumnInt64(2)),
				Code:     int(stmt.ColumnInt64(3)),
				At:       timeAt(stmt.ColumnInt64(4)),
				NextAt:   timeAt(stmt.ColumnInt64(5)),
				Text:     stmt.ColumnText(6),
				Relay:    stmt.ColumnText(7),
				Address:  stmt.ColumnText(8),
			})
		}, int64(manifest), int64(from), int64(to))
	})
}

// ManifestOf reads the manifest of an event that covers a partition, nil if
// none does.
func (s *Deliveries) ManifestOf(ctx context.Context, ref fanfare.EventRef, partition int) (*fanfare.Manifest, error) {
	d, err := s.day(ctx, ref.Day, false)
	if err != nil {
		return nil, err
	}
	var manifest *fanfare.Manifest
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "manifest_of_partition", func(stmt *sqlite.Stmt) error {
			m, err := manifestAt(stmt)
			manifest = &m
			return err
		}, int64(fanfare.NewManifestID(ref.Seq, 0)), int64(fanfare.NewManifestID(ref.Seq, partition)))
	})
	return manifest, err
}
