package mailboxes

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare/internal/bench/harness"
)

// batchSize is the number of messages in a batch of the server.
const batchSize = 1000

// A rawTable has the rows of a table, in the order of the file.
type rawTable struct {
	name   string
	schema string
	rows   [][]any
}

// insertRaw inserts the rows that a broadcast has written into a new file, in transactions of batchSize messages over one connection, and returns
// messages per second. It is the limit of J6.
func insertRaw(l *harness.Env, dir string, messages int) (float64, error) {
	days, err := filepath.Glob(filepath.Join(dir, "deliveries", "deliveries-*.db"))
	if err != nil {
		return 0, err
	}
	if len(days) != 1 {
		return 0, fmt.Errorf("%d files of deliveries, expected one", len(days))
	}
	var tables []*rawTable
	for _, from := range []struct{ file, table string }{
		{days[0], "attempts"}, {filepath.Join(dir, "mailboxes.db"), "inbox_blocks"}, {filepath.Join(dir, "mailboxes.db"), "inbox_block_data"},
	} {
		t, err := readTable(from.file, from.table)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", from.table, err)
		}
		tables = append(tables, t)
	}
	conn, err := sqlite.OpenConn(l.File("raw.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // what was measured is over
	sync := "NORMAL"
	if l.Durability == "fsync" {
		sync = "FULL"
	}
	for _, statement := range []string{"PRAGMA synchronous = " + sync, tables[0].schema, tables[1].schema, tables[2].schema} {
		if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
			return 0, err
		}
	}
	batches := (messages + batchSize - 1) / batchSize
	started := time.Now()
	for i := range batches {
		if err := insertBatch(conn, tables, i, batches); err != nil {
			return 0, err
		}
	}
	return float64(messages) / time.Since(started).Seconds(), nil
}

// insertBatch inserts one of n equal parts of the tables.
func insertBatch(conn *sqlite.Conn, tables []*rawTable, i, n int) (err error) {
	end := sqlitex.Transaction(conn)
	defer end(&err)
	for _, t := range tables {
		for _, row := range t.rows[len(t.rows)*i/n : len(t.rows)*(i+1)/n] {
			if err := sqlitex.Execute(conn, "INSERT INTO "+t.name+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", &sqlitex.ExecOptions{Args: row}); err != nil {
				return err
			}
		}
	}
	return nil
}

func readTable(file, table string) (*rawTable, error) {
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // it was only read
	t := &rawTable{name: table}
	err = sqlitex.Execute(conn, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", &sqlitex.ExecOptions{Args: []any{table},
		ResultFunc: func(row *sqlite.Stmt) error { t.schema = row.ColumnText(0); return nil }})
	if err != nil {
		return nil, err
	}
	return t, sqlitex.Execute(conn, "SELECT * FROM "+table, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		values := make([]any, row.ColumnCount())
		for i := range values {
			switch row.ColumnType(i) {
			case sqlite.TypeInteger:
				values[i] = row.ColumnInt64(i)
			case sqlite.TypeText:
				values[i] = row.ColumnText(i)
			case sqlite.TypeBlob:
				b := make([]byte, row.ColumnLen(i))
				row.ColumnBytes(i, b)
				values[i] = b
			}
		}
		t.rows = append(t.rows, values)
		return nil
	}})
}
