package sqlite

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

// rowsPerInsert are the sizes of the multi-row statements, largest first: 64
// rows cost about a third less each than one.
var rowsPerInsert = [...]int{64, 8, 1}

// Commit keeps b in one transaction, or nothing of it. Its error is a
// *fanfare.Error and the cause.
func (c *Control) Commit(b *registry.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if b.Securely {
		err = securely(c.writer, func() error { return c.commit(b) })
	} else {
		err = c.commit(b)
	}
	if err == nil {
		return nil
	}
	if !c.writer.AutocommitEnabled() { // SQLite ends the transaction itself after some errors
		if rollback := c.run("ROLLBACK"); rollback != nil {
			err = fmt.Errorf("%w (and on rollback: %w)", err, rollback)
		}
	}
	return storeError(err)
}

func (c *Control) commit(b *registry.Batch) error {
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if b.ChangeSeq != 0 {
		if err := c.run("UPDATE meta SET value = ?1 WHERE name = 'change_seq'", int64(b.ChangeSeq)); err != nil {
			return err
		}
	}
	for i := range b.Config {
		if err := c.putConfig(&b.Config[i]); err != nil {
			return err
		}
	}
	for i := range b.Filters {
		if err := c.run("INSERT INTO filters (number, text) VALUES (?1, ?2)", int64(b.Filters[i].Number), b.Filters[i].Text); err != nil {
			return err
		}
	}
	if err := insertAll(c, &insertSubscribers, &b.Subscribers, bindSubscriber, b); err != nil {
		return err
	}
	if err := insertAll(c, &insertSubscriptions, &b.Subscriptions, bindSubscription, b); err != nil {
		return err
	}
	if err := c.update(b); err != nil {
		return err
	}
	if err := c.audit(b); err != nil {
		return err
	}
	if err := c.forget(b); err != nil {
		return err
	}
	return c.run("COMMIT")
}

// run executes one statement; its arguments are int64, string, []byte or nil.
func (c *Control) run(query string, args ...any) error {
	stmt, err := c.writer.Prepare(query)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		}
	}
	return finish(stmt)
}

func finish(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

func (c *Control) putConfig(r *registry.ConfigRecord) error {
	var deleted int64
	if r.Deleted {
		deleted = 1
	}
	return c.run(`INSERT INTO config (kind, number, service, name, body, deleted) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (kind, number) DO UPDATE SET name = excluded.name, body = excluded.body, deleted = excluded.deleted`,
		r.Kind, int64(r.Number), int64(r.Service), r.Name, string(r.Body), deleted)
}

// An insert is the text of a multi-row INSERT, for each size.
type insert struct {
	columns, shared int // parameters of each row, and before them of all rows
	queries         [len(rowsPerInsert)]string
}

// newInsert builds the texts. In row, each ? becomes a parameter of its own; ?1
// and so on (shared of them) have the same value in all rows.
func newInsert(head, row string, shared int) insert {
	in := insert{shared: shared, columns: strings.Count(row, "?") - shared}
	for i, rows := range rowsPerInsert {
		in.queries[i] = head + strings.TrimSuffix(strings.Repeat(row+",", rows), ",")
	}
	return in
}

var (
	insertSubscribers = newInsert(
		`INSERT INTO subscribers (place, service, kind, address, id, locale, time_zone, attributes) VALUES `,
		`(?, ?, ?, ?, ?, ?, ?, ?)`, 0)
	// SQLite numbers a plain ? one above the highest so far, hence the shared
	// parameters come first in each row.
	insertSubscriptions = newInsert(
		`INSERT INTO subscriptions (created_at, created_seq, place, subscriber, topic, channel, filter, rule, id, params, data) VALUES `,
		`(?1, ?2, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, 2)
)

// insertAll writes the rows of all partitions in order, as many at a time as
// there is a statement for.
func insertAll[R any](c *Control, in *insert, rows *[fanfare.Partitions][]R, bind func(*sqlite.Stmt, int, *R), b *registry.Batch) error {
	left := 0
	for i := range rows {
		left += len(rows[i])
	}
	partition, at := 0, 0
	for size := 0; left > 0; {
		n := rowsPerInsert[size]
		if left < n {
			size++
			continue
		}
		stmt, err := c.writer.Prepare(in.queries[size])
		if err != nil {
			return fmt.Errorf("prepare an insert of %d rows: %w", n, err)
		}
		if in.shared > 0 {
			stmt.BindInt64(1, b.At)
			stmt.BindInt64(2, int64(b.ChangeSeq))
		}
		for i := range n {
			for at == len(rows[partition]) {
				partition, at = partition+1, 0
			}
			bind(stmt, in.shared+i*in.columns, &rows[partition][at])
			at++
		}
		if err := finish(stmt); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// What is not bound is NULL: Prepare has cleared the bindings.

func bindSubscriber(stmt *sqlite.Stmt, base int, r *registry.SubscriberRecord) {
	stmt.BindInt64(base+1, int64(r.Place))
	stmt.BindInt64(base+2, int64(r.Service))
	stmt.BindInt64(base+3, int64(r.Kind))
	stmt.BindText(base+4, r.Address)
	bindText(stmt, base+5, r.ID)
	bindText(stmt, base+6, r.Locale)
	bindText(stmt, base+7, r.TimeZone)
	bindBytes(stmt, base+8, r.Attributes)
}

func bindSubscription(stmt *sqlite.Stmt, base int, r *registry.SubscriptionRecord) {
	stmt.BindInt64(base+1, int64(r.Place))
	stmt.BindInt64(base+2, int64(r.Subscriber))
	stmt.BindInt64(base+3, int64(r.Topic))
	stmt.BindInt64(base+4, int64(r.Channel))
	bindNumber(stmt, base+5, int64(r.Filter))
	bindNumber(stmt, base+6, int64(r.Rule))
	bindText(stmt, base+7, r.ID)
	bindBytes(stmt, base+8, r.Params)
	bindBytes(stmt, base+9, r.Data)
}

func bindText(stmt *sqlite.Stmt, param int, s string) {
	if s != "" {
		stmt.BindText(param, s)
	}
}

func bindBytes(stmt *sqlite.Stmt, param int, b []byte) {
	if len(b) > 0 {
		stmt.BindText(param, asString(b))
	}
}

func bindNumber(stmt *sqlite.Stmt, param int, n int64) {
	if n != 0 {
		stmt.BindInt64(param, n)
	}
}

func (c *Control) update(b *registry.Batch) error {
	for _, r := range b.SubscriberUpdates {
		stmt, err := c.writer.Prepare(`UPDATE subscribers SET kind = ?2, address = ?3, id = ?4, locale = ?5, time_zone = ?6, attributes = ?7,
			subscriber = ?8, parts = ?9, flags = ?10 WHERE place = ?1`)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(r.Place))
		stmt.BindInt64(2, int64(r.Kind))
		stmt.BindText(3, r.Address)
		bindText(stmt, 4, r.ID)
		bindText(stmt, 5, r.Locale)
		bindText(stmt, 6, r.TimeZone)
		bindBytes(stmt, 7, r.Attributes)
		bindNumber(stmt, 8, int64(r.Subscriber))
		bindBytes(stmt, 9, r.Parts)
		bindNumber(stmt, 10, int64(r.Flags))
		if err := finish(stmt); err != nil {
			return err
		}
	}
	for _, r := range b.SubscriptionUpdates {
		stmt, err := c.writer.Prepare(`UPDATE subscriptions SET channel = ?2, filter = ?3, rule = ?4, params = ?5, data = ?6,
			ended_at = ?7, ended_seq = ?8, reason = ?9, id = ?10 WHERE place = ?1`)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(r.Place))
		stmt.BindInt64(2, int64(r.Channel))
		bindNumber(stmt, 3, int64(r.Filter))
		bindNumber(stmt, 4, int64(r.Rule))
		bindBytes(stmt, 5, r.Params)
		bindBytes(stmt, 6, r.Data)
		if r.Ended {
			stmt.BindInt64(7, r.EndedAt)
			stmt.BindInt64(8, int64(r.EndedSeq))
			stmt.BindText(9, r.Reason)
		}
		bindText(stmt, 10, r.ID)
		if err := finish(stmt); err != nil {
			return err
		}
	}
	return nil
}
