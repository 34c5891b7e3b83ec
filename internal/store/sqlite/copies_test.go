package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// TestEveryTableIsAmongThoseThatACopyHas reads the schema: a table or a column
// that is not listed would be missing after a move.
func TestEveryTableIsAmongThoseThatACopyHas(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	day, err := db.Day(t.Context(), 20777, true)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"moves"} // of the database, not of what it holds
	for _, c := range []struct {
		part   *part
		listed []store.Table
	}{{db.control, store.ControlTables()}, {db.sessions, store.SessionTables()}, {db.mailboxes, store.MailboxTables()}, {day.(*part), store.DayTables()}} {
		var want []string
		for _, table := range c.listed {
			var columns []string
			for _, column := range table.Columns {
				columns = append(columns, column.Name+" "+string(column.Kind))
			}
			slices.Sort(columns)
			want = append(want, fmt.Sprintf("%s key %d: %s", table.Name, table.Key, strings.Join(columns, ", ")))
		}
		slices.Sort(want)
		if got := schemaOf(t, c.part, own); !slices.Equal(got, want) {
			t.Errorf("the schema has\n%s\nlisted is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func schemaOf(t *testing.T, p *part, own []string) (tables []string) {
	t.Helper()
	err := p.alone(func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(`SELECT m.name, group_concat(c.name || ' ' || CASE c.type WHEN 'INTEGER' THEN 'i' WHEN 'TEXT' THEN 't' ELSE 'b' END, ', ' ORDER BY c.name || ' ' || CASE c.type WHEN 'INTEGER' THEN 'i' WHEN 'TEXT' THEN 't' ELSE 'b' END), sum(c.pk > 0)
			FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' GROUP BY m.name ORDER BY m.name`)
		if err != nil {
			return err
		}
		return eachRow(stmt, func(stmt *sqlite.Stmt) error {
			if !slices.Contains(own, stmt.ColumnText(0)) {
				tables = append(tables, fmt.Sprintf("%s key %d: %s", stmt.ColumnText(0), stmt.ColumnInt(2), stmt.ColumnText(1)))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}
