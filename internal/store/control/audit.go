package control

import (
	"context"
	"errors"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store"
)

// auditRowsPerTrim is how many old rows one transaction removes.
const auditRowsPerTrim = 5000

// writeAudit writes the new rows and removes some old ones. It stores an empty text as an empty text, not as NULL.
func writeAudit(s store.Session, b *Batch) error {
	err := s.Insert("audit_insert", len(b.Audit), func(i int, to store.Values) {
		r := &b.Audit[i]
		to.Int64(r.ID)
		to.Text(r.KeyID)
		to.Text(r.KeyName)
		to.Text(r.Request)
		to.Text(r.Service)
		to.Text(r.Action)
		to.Text(r.Kind)
		to.Text(r.Name)
		bindText(to, asString(r.Detail))
	})
	if err != nil || b.AuditBefore == 0 {
		return err
	}
	return s.Run("audit_trim", b.AuditBefore, int64(auditRowsPerTrim))
}

// AuditBounds returns the lowest and the highest id of the audit, or 0 if it is empty.
func (s *Store) AuditBounds(ctx context.Context) (oldest, latest int64, err error) {
	err = s.part.Read(ctx, func(from store.Session) error {
		return from.Each("audit_bounds", func(r store.Row) error {
			oldest, latest = r.Int64(0), r.Int64(1)
			return nil
		})
	})
	return oldest, latest, err
}

var errEnough = errors.New("the callback stopped the iteration")

// AuditEntries visits the audit from id to down to id from, latest first, until visit returns false.
func (s *Store) AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error {
	err := s.part.Read(ctx, func(session store.Session) error {
		return inPieces(func() (rows int, err error) {
			err = session.Each("audit_between", func(r store.Row) error {
				rows++
				to = r.Int64(0) - 1
				if !visit(auditRecord(r)) {
					return errEnough
				}
				return nil
			}, from, to, int64(rowsAtOnce))
			return rows, err
		})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func auditRecord(r store.Row) *audit.Entry {
	return &audit.Entry{ID: r.Int64(0), Actor: audit.Actor{KeyID: r.Text(1), KeyName: r.Text(2), Request: r.Text(3)},
		Operation: audit.Operation{Service: r.Text(4), Action: r.Text(5), Kind: r.Text(6), Name: r.Text(7)},
		Detail:    r.Bytes(8)}
}
