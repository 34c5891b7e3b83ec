package upgrade

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the program under test, built once for all tests.
var binary string

// A release makes its fixture by these flags; see `make release-fixture`.
var (
	makeVersion = flag.String("make", "", "make the fixture of this version instead of testing those that there are")
	makeProgram = flag.String("program", "", "with -make: the program of that version, built with the tag crashsteps")
)

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "fanfare-upgrade-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "fanfare")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/fanfare")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot be built:", err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
