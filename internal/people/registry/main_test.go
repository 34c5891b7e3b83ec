package registry_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A property that opens a database for each of its cases has fewer of them where
// that takes a fifth of a second, and under the race detector, which is ten times
// slower and there for races: what the models say is seen without it. A flag says
// otherwise.
func TestMain(m *testing.M) {
	checks := "100"
	switch {
	case os.Getenv(pgtest.ChoiceVariable) == "postgres":
		checks = "10"
	case underRace:
		checks = "20"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
