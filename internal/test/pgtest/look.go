package pgtest

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Execute runs statements in a database, each in a transaction of its own.
func Execute(t TB, at string, statements ...string) {
	t.Helper()
	if err := execute(at, statements...); err != nil {
		t.Fatal(err)
	}
}

// Texts returns the first column, a text, of the rows that a query selects.
func Texts(t TB, at, query string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // all was answered
	rows, err := conn.Query(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Find lists where one of the names stands in the rows of a database, in any
// column of any table, in upper or lower case.
func Find(t TB, at string, names ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // all was answered
	found, err := find(ctx, conn, names)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readable selects the rows of each table as texts; blobs with the bytes of ASCII
// as they are.
const readable = `
SELECT c.oid::regclass::text,
	format('SELECT concat_ws('' '', %s) FROM %s', string_agg(
		CASE a.atttypid WHEN 'bytea'::regtype THEN format('encode(%I, ''escape'')', a.attname) ELSE format('%I::text', a.attname) END, ', '), c.oid::regclass)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r'
GROUP BY c.oid`

func find(ctx context.Context, conn *pgx.Conn, names []string) (found []string, err error) {
	rows, err := conn.Query(ctx, readable)
	if err != nil {
		return nil, err
	}
	tables := map[string]string{}
	var table, query, row string
	if _, err := pgx.ForEachRow(rows, []any{&table, &query}, func() error { tables[table] = query; return nil }); err != nil {
		return nil, err
	}
	for table, query := range tables {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		if _, err := pgx.ForEachRow(rows, []any{&row}, func() error {
			for _, name := range names {
				if strings.Contains(strings.ToLower(row), strings.ToLower(name)) {
					found = append(found, fmt.Sprintf("%s has %s", table, name))
				}
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
	}
	return found, nil
}
