package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the program under test, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(smallDisk) != "" {
		fmt.Fprintln(os.Stderr, runOnSmallDisk()) // returns only if it failed
		os.Exit(exitNoDisk)
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
