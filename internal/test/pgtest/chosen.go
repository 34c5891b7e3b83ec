package pgtest

import (
	"os"
)

// ChoiceVariable names the environment variable that says which database the
// tests of what is above the store use: sqlite, as without it, or postgres.
const ChoiceVariable = "FANFARE_TEST_DB"

// Chosen returns what Prepared does where PostgreSQL is chosen, and "" where
// SQLite is.
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
