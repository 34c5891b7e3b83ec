package deliveries

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// Park stores work that failed too often. The payload is the message from the bus; a retry puts it back there.
func (s *Store) Park(ctx context.Context, of fanfare.Day, seq fanfare.EventSeq, p fanfare.Parked, payload []byte) error {
	return s.begin(ctx, of, func(in store.Session) error {
		return insertNumbered(in, "parked_next", "park", 1, func(_ int, to store.Values) {
			to.Text(p.Kind)
			to.Int64(int64(seq))
			to.Text(p.Reason)
			to.Int64(int64(p.Failures))
			to.Int64(int64(p.Members))
			to.Int64(p.At.UnixNano())
			to.Bytes(checksum.Add(int64(seq), payload))
		})
	})
}

// Parked reads all parked work of a day with its payloads. A damaged payload is nil, and the reason says so.
func (s *Store) Parked(ctx context.Context, of fanfare.Day) (parked []fanfare.Parked, payloads [][]byte, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		parked, payloads = nil, nil
		return in.Each("parked", func(r store.Row) error {
			parked = append(parked, fanfare.Parked{
				ID:       parkedID(of, r.Int64(0)),
				Kind:     r.Text(1),
				Event:    fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(r.Int64(2))}.String(),
				Reason:   r.Text(3),
				Failures: int(r.Int64(4)),
				Members:  int(r.Int64(5)),
				At:       timeAt(r.Int64(6)).Truncate(time.Millisecond),
			})
			payload, valid := checksum.Verify(r.Int64(2), r.Bytes(7))
			if !valid {
				payload = nil
				last := &parked[len(parked)-1]
				last.Reason += "; " + checksum.Damaged("this parked work").Error()
			}
			payloads = append(payloads, payload)
			return nil
		})
	})
	return parked, payloads, err
}

// Unpark deletes parked work.
func (s *Store) Unpark(ctx context.Context, id string) error {
	of, row, err := parseParkedID(id)
	if err != nil {
		return err
	}
	return s.write(ctx, of, func(in store.Session) error { return in.Run("parked_delete", row) })
}

func parkedID(of fanfare.Day, row int64) string { return fmt.Sprintf("prk-%s-%x", of, row) }

func parseParkedID(id string) (fanfare.Day, int64, error) {
	var day string
	var row int64
	_, err := fmt.Sscanf(id, "prk-%8s-%x", &day, &row)
	of, dayErr := fanfare.ParseDay(day)
	if err != nil || dayErr != nil || parkedID(of, row) != id {
		return 0, 0, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no parked work %q", id), Hint: "run `fanfare parked list` to see the ids"}
	}
	return of, row, nil
}
