package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// insertRows is how many rows one prepared statement inserts; a group is cut
// into statements of these sizes.
var insertRows = [...]int{32, 8, 1}

var attemptInserts = func() [len(insertRows)]string {
	var queries [len(insertRows)]string
	for i, n := range insertRows {
		queries[i] = repeated(dayQueries["attempts_insert"], n)
	}
	return queries
}()

// Commit appends what one group of attempts led to, in one transaction: the
// entries, the retries that follow from them, and the completion of broadcasts
// whose last delivery is settled. All entries belong to one day.
func (s *Deliveries) Commit(ctx context.Context, of fanfare.Day, group *fanfare.Commit) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	return d.write(func(conn *sqlite.Conn) error {
		if err := insertEntries(conn, group.Entries); err != nil {
			return err
		}
		for i := range group.Dues {
			if err := insertDue(conn, &group.Dues[i]); err != nil {
				return err
			}
		}
		for i := range group.Completions {
			c := &group.Completions[i]
			counts, err := json.Marshal(c.Progress.Counts)
			if err != nil {
				return err
			}
			if err := dayQueries.run(conn, "complete", int64(c.Seq), string(counts),
				nanos(c.Progress.First), nanos(c.Progress.Last), nanos(c.Progress.Completed)); err != nil {
				return err
			}
		}
		return nil
	})
}

func insertEntries(conn *sqlite.Conn, entries []fanfare.Entry) error {
	for i, size := range insertRows {
		for len(entries) >= size {
			stmt, err := conn.Prepare(attemptInserts[i])
			if err != nil {
				return err
			}
			for j := range size {
				bindEntry(stmt, j*10, &entries[j])
			}
			_, err = stmt.Step()
			if resetErr := stmt.Reset(); err == nil {
				err = resetErr
			}
			if err != nil {
				return err
			}
			entries = entries[size:]
		}
	}
	return nil
}

func bindEntry(stmt *sqlite.Stmt, at int, e *fanfare.Entry) {
	stmt.BindInt64(at+1, int64(e.Delivery.Manifest))
	stmt.BindInt64(at+2, int64(e.Delivery.Position))
	stmt.BindInt64(at+3, int64(e.Attempt))
	stmt.BindInt64(at+4, int64(e.State))
	stmt.BindInt64(at+5, int64(e.Code))
	stmt.BindInt64(at+6, e.At.UnixNano())
	stmt.BindInt64(at+7, nanos(e.NextAt))
	stmt.BindText(at+8, e.Text)
	stmt.BindText(at+9, e.Relay)
	stmt.BindText(at+10, e.Address)
}

// nanos is a time as it is stored: 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeAt(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
