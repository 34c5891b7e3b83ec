package sqlite

import (
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// Park puts work aside that failed too often: the payload is what went over the
// bus and goes back there on a retry.
func (s *Deliveries) Park(ctx context.Context, of fanfare.Day, seq fanfare.EventSeq, p fanfare.Parked, payload []byte) error {
	d, err := s.day(ctx, of, true)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		return dayQueries.run(conn, "park", p.Kind, int64(seq), p.Reason, int64(p.Failures), int64(p.Members), p.At.UnixNano(), payload)
	})
}

// Parked reads all parked work of a day with its payloads.
func (s *Deliveries) Parked(ctx context.Context, of fanfare.Day) (parked []fanfare.Parked, payloads [][]byte, err error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, nil, err
	}
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "parked", func(stmt *sqlite.Stmt) error {
			parked = append(parked, fanfare.Parked{
				ID:       parkedID(of, stmt.ColumnInt64(0)),
				Kind:     stmt.ColumnText(1),
				Event:    fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(stmt.ColumnInt64(2))}.String(),
				Reason:   stmt.ColumnText(3),
				Failures: int(stmt.ColumnInt64(4)),
				Members:  int(stmt.ColumnInt64(5)),
				At:       timeAt(stmt.ColumnInt64(6)).Truncate(time.Millisecond),
			})
			payloads = append(payloads, bytesAt(stmt, 7))
			return nil
		})
	})
	return parked, payloads, err
}

// Unpark forgets parked work.
func (s *Deliveries) Unpark(ctx context.Context, id string) error {
	of, row, err := parseParkedID(id)
	if err != nil {
		return err
	}
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error { return dayQueries.run(conn, "parked_delete", row) })
}

func parkedID(of fanfare.Day, row int64) string { return fmt.Sprintf("prk-%s-%x", of, row) }

func parseParkedID(id string) (fanfare.Day, int64, error) {
	var day string
	var row int64
	_, err := fmt.Sscanf(id, "prk-%8s-%x", &day, &row)
	of, dayErr := fanfare.ParseDay(day)
	if err != nil || dayErr != nil || parkedID(of, row) != id {
		return 0, 0, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no parked work %q", id), Hint: "`fanfare parked list` shows the ids"}
	}
	return of, row, nil
}
