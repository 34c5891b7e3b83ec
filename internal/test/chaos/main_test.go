//go:build crashsteps

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// binary is the program under test, built with its failpoints.
var binary string

// disks is the directory of the disks of the machines.
var disks string

// directoryVariable is set in the process that runs the tests inside its own namespaces.
const directoryVariable = "CHAOS_DIRECTORY"

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	if os.Getenv(natsVariable) != "" {
		return report(serveNATS())
	}
	if dir := os.Getenv(directoryVariable); dir != "" {
		use(dir)
		isolated = true
		if err := prepareNetwork(); err != nil {
			return report(err)
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "fanfare-chaos-")
	if err != nil {
		return report(err)
	}
	defer os.RemoveAll(dir)
	use(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(disks, 0o755)); err != nil { // PostgreSQL has its own account
		return report(err)
	}
	out, err := exec.CommandContext(context.Background(), "go", "build", "-tags", "crashsteps", "-o", binary, "fanfare.dev/fanfare/cmd/fanfare").CombinedOutput()
	if err != nil {
		return report(fmt.Errorf("the program cannot be built: %w\n%s", err, out))
	}
	if err := pgtest.Fetch(); err != nil {
		return report(err)
	}
	code, err := runIsolated(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no network namespaces and no small disks; all processes use 127.0.0.1 and directories:", err)
		return m.Run()
	}
	return code
}

func use(dir string) { binary, disks = filepath.Join(dir, "fanfare"), filepath.Join(dir, "disks") }

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
