package storetest_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"testing"
)

// FANFARE_TEST_CHECKS is the number of random sequences of operations for each property. A flag overrides it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("FANFARE_TEST_CHECKS"), "100")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
