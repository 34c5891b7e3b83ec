package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/registry"
)

// auditRowsPerTrim is how many old rows one transaction removes.
const auditRowsPerTrim = 5000

var insertAudit = newInsert(`INSERT INTO audit (id, key_id, key_name, request, service, action, kind, name, detail) VALUES `,
	`(?, ?, ?, ?, ?, ?, ?, ?, ?)`, 0)

// bindAudit binds one row; an empty text is kept as one and not as NULL.
func bindAudit(stmt *sqlite.Stmt, base int, r *registry.AuditRecord) {
	stmt.BindInt64(base+1, r.ID)
	stmt.BindText(base+2, r.KeyID)
	stmt.BindText(base+3, r.KeyName)
	stmt.BindText(base+4, r.Request)
	stmt.BindText(base+5, r.Service)
	stmt.BindText(base+6, r.Action)
	stmt.BindText(base+7, r.Kind)
	stmt.BindText(base+8, r.Name)
	bindBytes(stmt, base+9, r.Detail)
}

// audit writes the new rows, as many at a time as there is a statement for, and
// removes some of the old ones.
func (c *Control) audit(b *registry.Batch) error {
	rows := b.Audit
	for size := 0; len(rows) > 0; {
		n := rowsPerInsert[size]
		if len(rows) < n {
			size++
			continue
		}
		stmt, err := c.writer.Prepare(insertAudit.queries[size])
		if err != nil {
			return err
		}
		for i := range n {
			bindAudit(stmt, i*insertAudit.columns, &rows[i])
		}
		if err := finish(stmt); err != nil {
			return err
		}
		rows = rows[n:]
	}
	if b.AuditBefore == 0 {
		return nil
	}
	return c.run(`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ?1 ORDER BY id LIMIT ?2)`, b.AuditBefore, int64(auditRowsPerTrim))
}

// AuditBounds returns the lowest and the highest id of the audit, 0 without any.
func (c *Control) AuditBounds(ctx context.Context) (oldest, latest int64, err error) {
	err = c.read(ctx, func(conn *sqlite.Conn) error {
		return all(conn, `SELECT (SELECT min(id) FROM audit), (SELECT max(id) FROM audit)`, func(stmt *sqlite.Stmt) error {
			oldest, latest = stmt.ColumnInt64(0), stmt.ColumnInt64(1)
			return nil
		})
	})
	return oldest, latest, err
}

// AuditRecords visits the audit from id to down to id from, the latest first,
// until visit returns false.
func (c *Control) AuditRecords(ctx context.Context, from, to int64, visit func(*registry.AuditRecord) bool) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(`SELECT id, key_id, key_name, request, service, action, kind, name, detail FROM audit
			WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC`)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, from)
		stmt.BindInt64(2, to)
		for {
			more, err := stmt.Step()
			if err != nil {
				return err
			}
			if !more || !visit(auditRecord(stmt)) {
				return stmt.Reset()
			}
		}
	})
}

func auditRecord(stmt *sqlite.Stmt) *registry.AuditRecord {
	return &registry.AuditRecord{ID: stmt.ColumnInt64(0), Actor: registry.Actor{KeyID: stmt.ColumnText(1), KeyName: stmt.ColumnText(2), Request: stmt.ColumnText(3)},
		Deed:   registry.Deed{Service: stmt.ColumnText(4), Action: stmt.ColumnText(5), Kind: stmt.ColumnText(6), Name: stmt.ColumnText(7)},
		Detail: []byte(stmt.ColumnText(8))}
}
