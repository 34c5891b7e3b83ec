package sqlite

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
)

// statements are the named queries of a .sql file.
type statements map[string]string

// parseStatements cuts a file at its "-- name: x" lines and leaves comments out.
func parseStatements(text string) statements {
	s := statements{}
	name := ""
	for line := range strings.Lines(text) {
		if named, ok := strings.CutPrefix(line, "-- name: "); ok {
			name = strings.TrimSpace(named)
		} else if !strings.HasPrefix(line, "--") && strings.TrimSpace(line) != "" {
			s[name] = strings.TrimSpace(s[name] + " " + strings.TrimSpace(line))
		}
	}
	return s
}

// prepare returns the named statement, ready to bind; the connection keeps it.
func (s statements) prepare(conn *sqlite.Conn, name string) (*sqlite.Stmt, error) {
	query, ok := s[name]
	if !ok {
		return nil, fmt.Errorf("no statement %q", name)
	}
	return conn.Prepare(query)
}

// repeated returns an INSERT … VALUES (?, …) with its tuple n times.
func repeated(insert string, n int) string {
	at := strings.LastIndex(insert, "VALUES ") + len("VALUES ")
	return insert + strings.Repeat(", "+insert[at:], n-1)
}

// run binds arguments to a named statement and steps it to its end.
func (s statements) run(conn *sqlite.Conn, name string, args ...any) error {
	return s.each(conn, name, func(*sqlite.Stmt) error { return nil }, args...)
}

// each calls row for each row of a named query. Arguments are int64, string or
// []byte.
func (s statements) each(conn *sqlite.Conn, name string, row func(*sqlite.Stmt) error, args ...any) (err error) {
	stmt, err := s.prepare(conn, name)
	if err != nil {
		return err
	}
	defer func() {
		if resetErr := stmt.Reset(); err == nil {
			err = resetErr
		}
	}()
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		default:
			return fmt.Errorf("statement %q: argument %d has type %T", name, i+1, arg)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := row(stmt); err != nil {
			return err
		}
	}
}

// bytesAt copies a blob or text column.
func bytesAt(stmt *sqlite.Stmt, column int) []byte {
	b := make([]byte, stmt.ColumnLen(column))
	stmt.ColumnBytes(column, b)
	return b
}
