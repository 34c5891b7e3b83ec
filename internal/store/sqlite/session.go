package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// A session runs the statements of a format on one connection. It implements store.Session.
//
// Statements stay compiled and keep their bindings until the next call: SQLite recompiles many statements after their
// bindings were cleared, because the plan could depend on them.
type session struct {
	conn       *sqlite.Conn
	statements statements
	compiled   map[compiled]*sqlite.Stmt
	visiting   string // the statement whose rows are being visited or bound
	values     values // values of the row that is being bound
}

var _ store.Session = (*session)(nil)

// compiled is the key of a compiled statement: its name and, for an INSERT, its number of rows.
type compiled struct {
	name string
	rows int // 0: the statement as it is in the file
}

func newSession(conn *sqlite.Conn, format *format) *session {
	return &session{conn: conn, statements: format.statements, compiled: map[compiled]*sqlite.Stmt{}}
}

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

// EachOf runs the statement for each set of arguments.
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

// Insert writes rows in groups, with the largest statement that fits.
func (s *session) Insert(statement string, n int, bind func(i int, to store.Values)) error {
	in, err := s.statements.insert(statement)
	if err != nil {
		return err
	}
	return s.alone(statement, func() error {
		at := 0
		for k, size := range insertRows {
			for ; n-at >= size; at += size {
				if err := s.insert(compiled{statement, size}, in.queries[k], in.columns, at, bind); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// insert writes one group of rows, from row at on.
func (s *session) insert(of compiled, query string, columns, at int, bind func(i int, to store.Values)) error {
	stmt, err := s.compile(of, query)
	if err != nil {
		return err
	}
	for i := range of.rows {
		s.values = values{stmt: stmt, before: i * columns}
		bind(at+i, &s.values)
		if s.values.bound != columns {
			return fmt.Errorf("statement %q: got %d values for %d columns", of.name, s.values.bound, columns)
		}
	}
	return execute(stmt)
}

// each binds arguments to a statement and steps it.
func (s *session) each(statement string, row func(*sqlite.Stmt) error, args []any) error {
	query, ok := s.statements.texts[statement]
	if !ok {
		return fmt.Errorf("no statement %q", statement)
	}
	stmt, err := s.compile(compiled{name: statement}, query.Text)
	if err != nil {
		return err
	}
	if n := stmt.BindParamCount(); n != len(args) {
		return fmt.Errorf("statement %q: got %d arguments for %d parameters", statement, len(args), n)
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, store.Text(v))
		case []byte:
			stmt.BindBytes(i+1, v)
		case nil:
			stmt.BindNull(i + 1)
		default:
			return fmt.Errorf("statement %q: argument %d has the unsupported type %T", statement, i+1, arg)
		}
	}
	return eachRow(stmt, row)
}

// compile returns a statement that is ready for binding.
func (s *session) compile(of compiled, query string) (*sqlite.Stmt, error) {
	stmt := s.compiled[of]
	if stmt == nil {
		var err error
		if stmt, err = s.conn.Prepare(query); err != nil {
			return nil, err
		}
		s.compiled[of] = stmt
	}
	return stmt, nil
}

// alone refuses a statement while the rows of another are visited, because PostgreSQL cannot run it either.
func (s *session) alone(statement string, fn func() error) error {
	if s.visiting != "" {
		return fmt.Errorf("statement %q cannot run while the rows of %q are read", statement, s.visiting)
	}
	s.visiting = statement
	defer func() { s.visiting = "" }()
	return fn()
}
