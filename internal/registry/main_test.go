package registry_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"fanfare.dev/fanfare/internal/pgtest"
)

// A property that opens a database for each of its cases has fewer of them where
// that takes a fifth of a second. A flag says otherwise.
func TestMain(m *testing.M) {
	if os.Getenv(pgtest.ChoiceVariable) == "postgres" {
		if err := flag.Set("rapid.checks", "10"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
