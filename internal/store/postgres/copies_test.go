package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

// TestEveryTableIsAmongThoseThatACopyHas reads the schema: a table or a column
// that is not listed would be missing after a move.
func TestEveryTableIsAmongThoseThatACopyHas(t *testing.T) {
	conn := migrated(t)
	own := []string{"migrations", "writers", "moves", "days", "delivery_states", "leases", "nodes", "server_keys"} // of the database, not of what it holds
	var want []string
	for _, table := range slices.Concat(store.ControlTables(), store.SessionTables(), store.MailboxTables(), store.DayTables()) {
		var columns []string
		for _, c := range table.Columns {
			columns = append(columns, c.Name+" "+string(c.Kind))
		}
		slices.Sort(columns)
		want = append(want, fmt.Sprintf("%s: %s", table.Name, strings.Join(columns, ", ")))
	}
	slices.Sort(want)
	var got []string
	for _, table := range collect[string](t, conn, `
		SELECT c.relname || ': ' || string_agg(a.attname || CASE a.atttypid WHEN 'text'::regtype THEN ' t' WHEN 'bytea'::regtype THEN ' b' ELSE ' i' END, ', ' ORDER BY a.attname COLLATE "C")
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND (a.attname <> 'day' OR c.relname = 'bounces') -- elsewhere it keeps the days apart
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		GROUP BY c.relname ORDER BY c.relname COLLATE "C"`) {
		if name, _, _ := strings.Cut(table, ":"); !slices.Contains(own, name) {
			got = append(got, table)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the schema has\n%s\nlisted is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
