package sqlite

import (
	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// A row is the current row of a statement.
type row struct{ stmt *sqlite.Stmt }

func (r row) IsNull(column int) bool    { return r.stmt.ColumnIsNull(column) }
func (r row) Int64(column int) int64    { return r.stmt.ColumnInt64(column) }
func (r row) Text(column int) string    { return r.stmt.ColumnText(column) }
func (r row) Len(column int) int        { return r.stmt.ColumnLen(column) }
func (r row) Copy(column int, b []byte) { r.stmt.ColumnBytes(column, b) }
func (r row) Bytes(column int) []byte   { return bytesAt(r.stmt, column) }

// values binds the columns of one row of an INSERT.
type values struct {
	stmt          *sqlite.Stmt
	before, bound int // number of parameters of earlier rows; number of values bound for this one
}

func (v *values) next() int {
	v.bound++
	return v.before + v.bound
}

func (v *values) Int64(n int64)  { v.stmt.BindInt64(v.next(), n) }
func (v *values) Text(s string)  { v.stmt.BindText(v.next(), store.Text(s)) }
func (v *values) Bytes(b []byte) { v.stmt.BindBytes(v.next(), b) }
func (v *values) Null()          { v.stmt.BindNull(v.next()) }
