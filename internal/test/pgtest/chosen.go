package pgtest

import (
	"os"
)

// ChoiceVariable is the environment variable that selects the database for tests of the layers above the store: sqlite
// (the default) or postgres.
const ChoiceVariable = "FANFARE_TEST_DB"

// Chosen returns the result of Prepared if PostgreSQL is selected, and "" for SQLite.
func Chosen(t TB) string {
	t.Helper()
	switch choice := os.Getenv(ChoiceVariable); choice {
	case "", "sqlite":
		return ""
	case "postgres":
		return Prepared(t)
	default:
		t.Fatalf("%s=%s names no database: use sqlite or postgres", ChoiceVariable, choice)
		return ""
	}
}
