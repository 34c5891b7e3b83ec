package control

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store"
)

// putPrivacy keeps what a batch says of suppressions and erasures.
func putPrivacy(s store.Session, b *Batch) error {
	for i := range b.Suppressions {
		r := &b.Suppressions[i]
		statement, args := "suppression_put", []any{int64(r.Service), int64(r.Kind), r.Hash[:], r.Reason, r.At, r.Until, r.Source, r.Address, int64(r.Tag)}
		if r.Lifted {
			statement, args = "suppression_delete", args[:3]
		}
		if err := s.Run(statement, args...); err != nil {
			return err
		}
		if r.Lifted && r.At != 0 {
			if err := s.Run("bounces_clear", int64(r.Service), int64(r.Kind), r.Hash[:], r.At); err != nil {
				return err
			}
		}
	}
	for i := range b.Erasures {
		r := &b.Erasures[i]
		statement, args := "erasure_put", []any{int64(r.Place), string(r.Body)}
		if r.Body == nil {
			statement, args = "erasure_delete", args[:1]
		}
		if err := s.Run(statement, args...); err != nil {
			return err
		}
	}
	for _, number := range b.ErasedFilters {
		if err := s.Run("filter_empty", int64(number)); err != nil {
			return err
		}
	}
	for id, name := range b.RenamedAuditEntries {
		if err := s.Run("audit_rename", name, id); err != nil {
			return err
		}
	}
	return nil
}

func loadForgotten(s store.Session, v Loader) error {
	err := s.Each("suppressions", func(r store.Row) error {
		record := suppression.Record{Service: uint32(r.Int64(0)), Kind: uint8(r.Int64(1)), Reason: r.Text(3), At: r.Int64(4), Until: r.Int64(5), Tag: uint64(r.Int64(6))}
		r.Copy(2, record.Hash[:])
		v.Suppression(&record)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Each("erasures", func(r store.Row) error {
		return v.Erasure(&ErasureRecord{Place: fanfare.RowID(r.Int64(0)), Body: r.Bytes(1)})
	})
}
