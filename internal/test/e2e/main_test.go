package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binary is the program under test, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(smallDisk) != "" {
		fmt.Fprintln(os.Stderr, runOnSmallDisk()) // returns only if it failed
		os.Exit(exitNoDisk)
	}
	if len(os.Args) > 2 && os.Args[1] == "worker" { // started by an agent
		os.Exit(runWorker(os.Args[2:]))
	}
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "logged-") { // of a loggedLoad
		os.Exit(runLogged(os.Args[1], os.Args[2:]))
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fanfare-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "fanfare")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/fanfare")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot be built:", err)
		return 1
	}
	return m.Run()
}
