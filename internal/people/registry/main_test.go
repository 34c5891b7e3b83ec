package registry_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// Property tests that open a database for each case run fewer cases if opening takes a
// fifth of a second, and under the race detector, which is ten times slower and whose
// purpose is to find races. FANFARE_TEST_CHECKS names another number of cases for files
// than 100, and a flag overrides all of this.
func TestMain(m *testing.M) {
	checks := cmp.Or(os.Getenv("FANFARE_TEST_CHECKS"), "100")
	switch {
	case os.Getenv(pgtest.ChoiceVariable) == "postgres":
		checks = "10"
	case underRace:
		checks = "10"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
