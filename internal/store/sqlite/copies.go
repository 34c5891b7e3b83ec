package sqlite

import "fanfare.dev/fanfare/internal/store"

// copies contains the statements that copy tables.
func copies(tables []store.Table) string {
	return "\n" + store.CopyStatements(tables, store.Dialect{
		Param:  func(int) string { return "?" },
		Bound:  func(int, store.Kind) string { return "?" },
		Place:  func(table string) (string, string, string, string) { return table, "", "", "" },
		Binary: func(column string) string { return column },
	})
}
