package sqlite

import (
	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

// forget keeps what a batch says of suppressions and erasures.
func (c *Control) forget(b *registry.Batch) error {
	for i := range b.Suppressions {
		s := &b.Suppressions[i]
		query := `INSERT OR REPLACE INTO suppressions (service, kind, hash, reason, at) VALUES (?1, ?2, ?3, ?4, ?5)`
		args := []any{int64(s.Service), int64(s.Kind), s.Hash[:], s.Reason, s.At}
		if s.Lifted {
			query, args = `DELETE FROM suppressions WHERE service = ?1 AND kind = ?2 AND hash = ?3`, args[:3]
		}
		if err := c.run(query, args...); err != nil {
			return err
		}
	}
	for i := range b.Erasures {
		e := &b.Erasures[i]
		query, args := `INSERT OR REPLACE INTO erasures (place, body) VALUES (?1, ?2)`, []any{int64(e.Place), string(e.Body)}
		if e.Body == nil {
			query, args = `DELETE FROM erasures WHERE place = ?1`, args[:1]
		}
		if err := c.run(query, args...); err != nil {
			return err
		}
	}
	for _, number := range b.EmptyFilters {
		if err := c.run(`UPDATE filters SET text = '' WHERE number = ?1`, int64(number)); err != nil {
			return err
		}
	}
	for id, name := range b.AuditNames {
		if err := c.run(`UPDATE audit SET name = ?2 WHERE id = ?1`, id, name); err != nil {
			return err
		}
	}
	return nil
}

func loadForgotten(conn *sqlite.Conn, v registry.Loader) error {
	err := all(conn, `SELECT service, kind, hash, reason, at FROM suppressions`, func(stmt *sqlite.Stmt) error {
		s := registry.SuppressionRecord{Service: uint32(stmt.ColumnInt64(0)), Kind: uint8(stmt.ColumnInt64(1)), Reason: stmt.ColumnText(3), At: stmt.ColumnInt64(4)}
		copy(s.Hash[:], bytesAt(stmt, 2))
		v.Suppression(&s)
		return nil
	})
	if err != nil {
		return err
	}
	return all(conn, `SELECT place, body FROM erasures ORDER BY place`, func(stmt *sqlite.Stmt) error {
		return v.Erasure(&registry.ErasureRecord{Place: fanfare.Place(stmt.ColumnInt64(0)), Body: bytesAt(stmt, 1)})
	})
}

// Scrub makes sure that names are in no unused byte of the file, nor in its
// write-ahead log.
func (c *Control) Scrub(names [][]byte) error {
	return (&scrubber{c.path, func(fn func(*sqlite.Conn) error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fn(c.writer)
	}}).scrub(names)
}
