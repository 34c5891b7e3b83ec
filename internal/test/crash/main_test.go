//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/powerloss/mount"
)

// patience bounds every wait: a machine that is busy with other things needs
// some, a server that hangs is found all the same.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("CRASH_PATIENCE")); err == nil && d > 0 {
		return d
	}
	return 3 * time.Minute
}()

func TestMain(m *testing.M) {
	if code, isChild := mount.RunChild(); isChild {
		os.Exit(code)
	}
	if path := os.Getenv(sinkRecord); path != "" {
		if err := sinkMain(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fanfare-crash")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, "fanfare")
		out, err := exec.CommandContext(context.Background(), "go", "build", "-tags", "crashsteps", "-o", path, "fanfare.dev/fanfare/cmd/fanfare").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build the server: %w\n%s", err, out)
		}
		return path, nil
	})
	return m.Run()
}

// binary builds the server with its crash steps, once.
var binary func() (string, error)

// setting reads a number from the environment.
func setting(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a positive number", name, text)
	}
	return n
}

// seedOf chooses a seed and tells which, so that a run can be had again.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(setting(t, "CRASH_SEED", 1+rand.IntN(1e9)))
	t.Logf("CRASH_SEED=%d", seed)
	return seed
}
