package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// Highest returns the highest event sequence that any day's file has, so that
// a new stream can number above it.
func (s *Deliveries) Highest(ctx context.Context) (fanfare.EventSeq, error) {
	days, err := s.Days()
	if err != nil || len(days) == 0 {
		return 0, err
	}
	var highest int64
	for i, of := range days {
		if i > 1 && highest > 0 {
			break // older days have lower ones
		}
		d, err := s.day(ctx, of, false)
		if err != nil {
			return 0, err
		}
		err = d.read(ctx, func(conn *sqlite.Conn) error {
			return dayQueries.each(conn, "highest", func(stmt *sqlite.Stmt) error {
				highest = max(highest, stmt.ColumnInt64(0))
				return nil
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return fanfare.EventSeq(highest), nil
}

// Open visits the broadcasts of a day that are not completed, with their
// progress so far, counted from their attempts.
func (s *Deliveries) Open(ctx context.Context, of fanfare.Day, visit func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress)) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.read(ctx, func(conn *sqlite.Conn) error {
		type open struct {
			seq      fanfare.EventSeq
			messages int64
		}
		var opens []open
		if err := dayQueries.each(conn, "open_broadcasts", func(stmt *sqlite.Stmt) error {
			opens = append(opens, open{fanfare.EventSeq(stmt.ColumnInt64(0)), stmt.ColumnInt64(1)})
			return nil
		}); err != nil {
			return err
		}
		for _, o := range opens {
			progress, err := countAttempts(conn, o.seq)
			if err != nil {
				return err
			}
			visit(o.seq, o.messages, progress)
		}
		return nil
	})
}

// countAttempts counts the newest entries of all deliveries of an event.
// Deliveries without an entry are not in the counts.
func countAttempts(conn *sqlite.Conn, seq fanfare.EventSeq) (fanfare.Progress, error) {
	var p fanfare.Progress
	var manifest, position int64 = -1, -1
	var state fanfare.State
	err := dayQueries.each(conn, "open_attempts", func(stmt *sqlite.Stmt) error {
		m, pos := stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		if m == manifest && pos == position {
			p.Counts[state]--
		}
		manifest, position, state = m, pos, fanfare.State(stmt.ColumnInt64(3))
		p.Counts[state]++
		at := timeAt(stmt.ColumnInt64(4))
		if p.First.IsZero() || at.Before(p.First) {
			p.First = at
		}
		if at.After(p.Last) {
			p.Last = at
		}
		return nil
	}, int64(fanfare.NewManifestID(seq, 0)), int64(fanfare.NewManifestID(seq+1, 0)))
	return p, err
}

// Switches visits all switches of a day, with the time since when they are set.
func (s *Deliveries) Switches(ctx context.Context, of fanfare.Day, visit func(sw fanfare.Switch, since time.Time)) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "switches", func(stmt *sqlite.Stmt) error {
			visit(fanfare.Switch{
				Event:   fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(stmt.ColumnInt64(0))},
				Channel: uint16(stmt.ColumnInt64(1)),
				State:   stmt.ColumnText(2),
				Reason:  stmt.ColumnText(3),
			}, timeAt(stmt.ColumnInt64(4)))
			return nil
		})
	})
}

// SetSwitches keeps switches of broadcasts of one day; the empty state removes
// one.
func (s *Deliveries) SetSwitches(ctx context.Context, of fanfare.Day, switches []fanfare.Switch, now time.Time) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		for _, sw := range switches {
			seq, channel := int64(sw.Event.Seq), int64(sw.Channel)
			if sw.State == "" {
				err = dayQueries.run(conn, "unswitch", seq, channel)
			} else {
				err = dayQueries.run(conn, "switch", seq, channel, sw.State, sw.Reason, now.UnixNano())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
