package sqlite

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/store"
)

// statements are the named statements of a .sql file, and the INSERTs in the forms that Insert uses.
type statements struct {
	texts   store.Statements
	inserts map[string]insert
}

// insertRows are the sizes of the multi-row statements, largest first: 64 rows
// cost about a third less each than one.
var insertRows = [...]int{64, 32, 16, 8, 4, 2, 1}

// An insert is the text of an INSERT for each of these sizes.
type insert struct {
	columns int
	queries [len(insertRows)]string
}

func parseStatements(file string) statements {
	s := statements{store.ParseStatements(file), map[string]insert{}}
	for name, statement := range s.texts {
		if in, ok := newInsert(statement.Text); ok {
			s.inserts[name] = in
		}
	}
	return s
}

// newInsert repeats the tuple of an INSERT … VALUES (?, …) for each size, and returns false for other statements. It uses
// OR FAIL: a failure ends the transaction anyway, so SQLite need not copy each page that a statement changes in order to
// undo that statement alone.
func newInsert(query string) (in insert, ok bool) {
	const values = "VALUES "
	from := strings.Index(query, values+"(?")
	if from < 0 || !strings.HasPrefix(query, "INSERT ") {
		return in, false
	}
	from += len(values)
	to := from + strings.IndexByte(query[from:], ')') + 1
	tuple := query[from:to]
	in.columns = strings.Count(tuple, "?")
	head := strings.Replace(query[:to], "INSERT INTO", "INSERT OR FAIL INTO", 1)
	for i, rows := range insertRows {
		in.queries[i] = head + strings.Repeat(", "+tuple, rows-1) + query[to:]
	}
	return in, tuple == "("+strings.TrimSuffix(strings.Repeat("?, ", in.columns), ", ")+")"
}

func (s *statements) insert(name string) (insert, error) {
	in, ok := s.inserts[name]
	if !ok {
		return in, fmt.Errorf("no INSERT … VALUES (?, …) named %q", name)
	}
	return in, nil
}
