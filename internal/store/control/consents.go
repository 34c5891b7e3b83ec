package control

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// writeConsents adds rows, and deletes the rows of erased people.
func writeConsents(s store.Session, b *Batch) error {
	for i := range b.Consents {
		r := &b.Consents[i]
		if err := s.Run("consent_put", int64(r.Subscription), r.At, string(r.Body)); err != nil {
			return err
		}
	}
	for _, place := range b.DeletedConsents {
		if err := s.Run("consents_delete", int64(place)); err != nil {
			return err
		}
	}
	return nil
}

// ConsentRecords visits the consents of the subscriptions at places, for each subscription oldest first.
func (s *Store) ConsentRecords(ctx context.Context, places []fanfare.RowID, visit func(*ConsentRecord) error) error {
	return s.part.Read(ctx, func(from store.Session) error {
		for _, place := range places {
			err := from.Each("consents_of", func(r store.Row) error {
				return visit(&ConsentRecord{Subscription: place, At: r.Int64(0), Body: r.Bytes(1)})
			}, int64(place))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
