package control

import (
	"context"

	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store"
)

// SuppressionRecords completes the records of some suppressed addresses, of which service,
// kind and hash are given. It does not change records that the store does not have.
func (s *Store) SuppressionRecords(ctx context.Context, of []suppression.Record) error {
	return s.part.Read(ctx, func(from store.Session) error {
		key := func(i int) []any { return []any{int64(of[i].Service), int64(of[i].Kind), of[i].Hash[:]} }
		return from.EachOf("suppression", len(of), key, func(i int, r store.Row) error {
			record := &of[i]
			record.Reason, record.At, record.Until = r.Text(0), r.Int64(1), r.Int64(2)
			record.Source, record.Address, record.Tag = r.Text(3), r.Text(4), uint64(r.Int64(5))
			return nil
		})
	})
}
