package control

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// A Minute has the values of a minute.
type Minute struct {
	At   int64  // start of the minute, Unix seconds
	Body string // JSON
}

// AddMinutes stores the values of minutes in one transaction. If a minute has values already, it stores those that merge returns.
func (s *Store) AddMinutes(ctx context.Context, minutes []Minute, merge func(stored, more string) (string, error)) error {
	return s.part.Write(ctx, func(session store.Session) error {
		for _, m := range minutes {
			stored := ""
			if err := session.Each("minute_value", func(r store.Row) error { stored = r.Text(0); return nil }, m.At); err != nil {
				return err
			}
			body := m.Body
			if stored != "" {
				merged, err := merge(stored, body)
				if err != nil {
					return err
				}
				body = merged
			}
			if err := session.Run("minute_value_put", m.At, body); err != nil {
				return err
			}
		}
		return nil
	})
}

// Minutes visits the values of the minutes from since until before until, in Unix seconds, the oldest first.
func (s *Store) Minutes(ctx context.Context, since, until int64, visit func(Minute) error) error {
	return s.part.Read(ctx, func(session store.Session) error {
		return session.Each("minute_values", func(r store.Row) error { return visit(Minute{r.Int64(0), r.Text(1)}) }, since, until)
	})
}

// TrimMinutes deletes the values of minutes before a time in Unix seconds.
func (s *Store) TrimMinutes(ctx context.Context, before int64) error {
	return s.part.Write(ctx, func(session store.Session) error { return session.Run("minute_values_trim", before) })
}
