//go:build powerloss

package durablefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/test/powerloss/mount"
)

func TestMain(m *testing.M) {
	if code, isChild := mount.RunChild(); isChild {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestAllSurvivesALossOfPower(t *testing.T) {
	m := mount.Start(t)
	deep := filepath.Join(m.Dir, "a", "b", "c")
	must(t, durablefile.MakeDir(deep, 0o700))
	must(t, durablefile.Write(filepath.Join(deep, "file"), []byte("old")))
	must(t, durablefile.Write(filepath.Join(deep, "file"), []byte("new")))
	m.LosePower(0)
	expect(t, filepath.Join(deep, "file"), "new")
	must(t, durablefile.Rename(filepath.Join(deep, "file"), filepath.Join(m.Dir, "a", "moved")))
	m.LosePower(0)
	expect(t, filepath.Join(m.Dir, "a", "moved"), "new")
	if _, err := os.Stat(filepath.Join(deep, "file")); !os.IsNotExist(err) {
		t.Errorf("the old name: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(m.Dir, "x", "y"), 0o700))
	must(t, os.WriteFile(filepath.Join(m.Dir, "x", "y", "empty"), nil, 0o600))
	must(t, durablefile.SyncTree(filepath.Join(m.Dir, "x")))
	m.LosePower(0)
	expect(t, filepath.Join(m.Dir, "x", "y", "empty"), "")
}

func TestAFileInTheWayIsAnError(t *testing.T) {
	m := mount.Start(t)
	file := filepath.Join(m.Dir, "file")
	must(t, durablefile.Write(file, nil))
	if err := durablefile.MakeDir(filepath.Join(file, "below"), 0o700); err == nil {
		t.Error("a directory below a file was created")
	}
	if err := durablefile.MakeDir(file, 0o700); err == nil {
		t.Error("a file counts as a directory")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, path, text string) {
	t.Helper()
	if content, err := os.ReadFile(path); err != nil || string(content) != text {
		t.Errorf("%s has %q, %v", path, content, err)
	}
}
