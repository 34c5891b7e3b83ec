package sqlite

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

func insertDue(conn *sqlite.Conn, due *fanfare.Due) error {
	positions := appendPositions(nil, due.Slice.Positions)
	return dayQueries.run(conn, "due_insert", due.At.Unix(), int64(due.Slice.Manifest), int64(due.Slice.Positions[0]),
		int64(due.Channel), int64(due.Lane), int64(due.Slice.Attempt), positions)
}

// NextDue returns the time of the earliest work that waits on a day, zero if
// none does.
func (s *Deliveries) NextDue(ctx context.Context, of fanfare.Day) (time.Time, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "due_next", func(stmt *sqlite.Stmt) error {
			if !stmt.ColumnIsNull(0) {
				next = time.Unix(stmt.ColumnInt64(0), 0).UTC()
			}
			return nil
		})
	})
	return next, err
}

// DueBy reads at most limit pieces of work of a day whose time has come,
// earliest first. They stay until RemoveDue.
func (s *Deliveries) DueBy(ctx context.Context, of fanfare.Day, now time.Time, limit int) ([]fanfare.Due, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, err
	}
	var dues []fanfare.Due
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "due", func(stmt *sqlite.Stmt) error {
			dues = append(dues, fanfare.Due{
				At:      time.Unix(stmt.ColumnInt64(0), 0).UTC(),
				Channel: uint16(stmt.ColumnInt64(3)),
				Lane:    fanfare.Lane(stmt.ColumnInt64(4)),
				Slice: fanfare.Slice{
					Manifest:  fanfare.ManifestID(stmt.ColumnInt64(1)),
					Attempt:   uint16(stmt.ColumnInt64(5)),
					Positions: readPositions(bytesAt(stmt, 6)),
				},
			})
			return nil
		}, now.Unix(), int64(limit))
	})
	return dues, err
}

// RemoveDue forgets work that was handed on.
func (s *Deliveries) RemoveDue(ctx context.Context, of fanfare.Day, dues []fanfare.Due) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		for i := range dues {
			due := &dues[i]
			if err := dayQueries.run(conn, "due_delete", due.At.Unix(), int64(due.Slice.Manifest),
				int64(due.Slice.Positions[0]), int64(due.Slice.Attempt)); err != nil {
				return err
			}
		}
		return nil
	})
}

// HastenDue makes all work of an event that waits due at once, so that a cancel
// reaches it.
func (s *Deliveries) HastenDue(ctx context.Context, ref fanfare.EventRef) error {
	d, err := s.day(ctx, ref.Day, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		return dayQueries.run(conn, "due_hasten", int64(fanfare.NewManifestID(ref.Seq, 0)), int64(fanfare.NewManifestID(ref.Seq+1, 0)))
	})
}

// Hold keeps a batch of what is paused.
func (s *Deliveries) Hold(ctx context.Context, batch *fanfare.Batch) error {
	d, err := s.day(ctx, batch.Day, true)
	if err != nil {
		return err
	}
	text, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error { return dayQueries.run(conn, "hold", string(text)) })
}

// Rehold puts batches in the place of all that are held of a day.
func (s *Deliveries) Rehold(ctx context.Context, of fanfare.Day, batches []fanfare.Batch) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		if err := dayQueries.run(conn, "held_clear"); err != nil {
			return err
		}
		for i := range batches {
			text, err := json.Marshal(&batches[i])
			if err != nil {
				return err
			}
			if err := dayQueries.run(conn, "hold", string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Held reads all held batches of a day with their ids.
func (s *Deliveries) Held(ctx context.Context, of fanfare.Day) (batches []fanfare.Batch, ids []int64, err error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, nil, err
	}
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "held", func(stmt *sqlite.Stmt) error {
			var batch fanfare.Batch
			ids = append(ids, stmt.ColumnInt64(0))
			err := json.Unmarshal(bytesAt(stmt, 1), &batch)
			batches = append(batches, batch)
			return err
		})
	})
	return batches, ids, err
}

// RemoveHeld forgets held batches that were handed on.
func (s *Deliveries) RemoveHeld(ctx context.Context, of fanfare.Day, ids []int64) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		for _, id := range ids {
			if err := dayQueries.run(conn, "held_delete", id); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendPositions(b []byte, positions []uint32) []byte {
	var before uint32
	for _, p := range positions {
		b = binary.AppendUvarint(b, uint64(p-before))
		before = p
	}
	return b
}

func readPositions(b []byte) []uint32 {
	var positions []uint32
	var before uint32
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		if n <= 0 {
			return positions
		}
		before += uint32(delta)
		positions = append(positions, before)
		b = b[n:]
	}
	return positions
}
