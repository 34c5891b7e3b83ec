package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// A session runs the statements of a format on one connection, which keeps them
// prepared. It satisfies store.Session.
type session struct {
	conn       *sqlite.Conn
	statements statements
	visiting   string // the statement whose rows are being visited or bound
	values     values // of the row that is being bound
}

var _ store.Session = (*session)(nil)

// Run executes a statement at once.
func (s *session) Run(statement string, args ...any) error {
	return s.Each(statement, func(store.Row) error { return nil }, args...)
}

// Each steps a statement from row to row.
func (s *session) Each(statement string, visit func(store.Row) error, args ...any) error {
	return s.alone(statement, func() error {
		return s.each(statement, func(stmt *sqlite.Stmt) error { return visit(row{stmt}) }, args)
	})
}

// EachOf runs the statement for one set of arguments after the other.
func (s *session) EachOf(statement string, n int, args func(i int) []any, visit func(i int, r store.Row) error) error {
	return s.alone(statement, func() error {
		i := 0
		each := func(stmt *sqlite.Stmt) error { return visit(i, row{stmt}) }
		for ; i < n; i++ {
			if err := s.each(statement, each, args(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Insert writes as many rows at a time as there is a statement for.
func (s *session) Insert(statement string, n int, bind func(i int, to store.Values)) error {
	in, err := s.statements.insert(statement)
	if err != nil {
		return err
	}
	return s.alone(statement, func() error {
		at := 0
		for k, size := range insertRows {
			for ; n-at >= size; at += size {
				if err := s.insert(statement, in.queries[k], in.columns, at, size, bind); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// insert writes size rows, from the row at on.
func (s *session) insert(statement, query string, columns, at, size int, bind func(i int, to store.Values)) error {
	stmt, err := s.conn.Prepare(query)
	if err != nil {
		return err
	}
	for i := range size {
		s.values = values{stmt: stmt, before: i * columns}
		bind(at+i, &s.values)
		if s.values.bound != columns {
			return fmt.Errorf("statement %q: %d values for %d columns", statement, s.values.bound, columns)
		}
	}
	return execute(stmt)
}

// each binds arguments to a statement and steps it.
func (s *session) each(statement string, row func(*sqlite.Stmt) error, args []any) error {
	stmt, err := s.statements.prepare(s.conn, statement)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, store.Text(v))
		case []byte:
			stmt.BindBytes(i+1, v)
		case nil: // as Prepare has left it
		default:
			return fmt.Errorf("statement %q: argument %d has type %T", statement, i+1, arg)
		}
	}
	return eachRow(stmt, row)
}

// alone refuses a statement inside of another: PostgreSQL cannot run it either.
func (s *session) alone(statement string, fn func() error) error {
	if s.visiting != "" {
		return fmt.Errorf("statement %q is run while the rows of %q are visited", statement, s.visiting)
	}
	s.visiting = statement
	defer func() { s.visiting = "" }()
	return fn()
}
