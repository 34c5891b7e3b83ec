package sqlite

import (
	"context"
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// Forget empties what attempts of some deliveries say of a person: address and
// reply text. All of refs are of one day. That there were attempts, and what
// came of them, stays.
func (s *Deliveries) Forget(ctx context.Context, of fanfare.Day, refs []fanfare.DeliveryRef) error {
	return s.forget(ctx, of, func(conn *sqlite.Conn) error {
		for _, ref := range refs {
			if err := dayQueries.run(conn, "attempts_forget", int64(ref.Manifest), int64(ref.Position)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReplacePosted keeps an event in another form than it was accepted in.
func (s *Deliveries) ReplacePosted(ctx context.Context, posted *fanfare.Posted) error {
	text, err := json.Marshal(posted)
	if err != nil {
		return err
	}
	ref := posted.Ref()
	return s.forget(ctx, ref.Day, func(conn *sqlite.Conn) error {
		return dayQueries.run(conn, "posted_replace", int64(ref.Seq), text)
	})
}

// ReplaceParked keeps parked work with another payload.
func (s *Deliveries) ReplaceParked(ctx context.Context, id string, payload []byte) error {
	of, row, err := parseParkedID(id)
	if err != nil {
		return err
	}
	return s.forget(ctx, of, func(conn *sqlite.Conn) error {
		return dayQueries.run(conn, "parked_replace", row, payload)
	})
}

func (s *Deliveries) forget(ctx context.Context, of fanfare.Day, fn func(*sqlite.Conn) error) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.direct(func(conn *sqlite.Conn) error {
		return securely(conn, func() error { return transact(conn, fn) })
	})
}

// Scrub makes sure that names are in no unused byte of a day's file, nor in its
// write-ahead log.
func (s *Deliveries) Scrub(ctx context.Context, of fanfare.Day, names [][]byte) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return (&scrubber{d.path, d.direct}).scrub(names)
}

// direct lends the connection that writes, outside of a transaction.
func (d *day) direct(fn func(*sqlite.Conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed:
		return unknownDay(d.day)
	default:
	}
	return fn(d.writer)
}
