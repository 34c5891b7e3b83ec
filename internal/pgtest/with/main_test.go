package main

import (
	"testing"

	"fanfare.dev/fanfare/internal/pgtest"
)

func TestTheCommandFindsAServerAndGivesTheExitCode(t *testing.T) {
	t.Setenv(pgtest.Variable, "")
	code, err := with([]string{"sh", "-c", `case $FANFARE_TEST_POSTGRES in postgres://fanfare:*@127.0.0.1:*/fanfare?*) exit 3;; esac`})
	if code != 3 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
}

func TestAServerThatIsNamedIsUsed(t *testing.T) {
	t.Setenv(pgtest.Variable, "postgres://elsewhere/")
	code, err := with([]string{"sh", "-c", `test "$FANFARE_TEST_POSTGRES" = postgres://elsewhere/`})
	if code != 0 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
}

func TestWithoutACommandNothingIsStarted(t *testing.T) {
	if _, err := with(nil); err == nil {
		t.Error("no error")
	}
}
