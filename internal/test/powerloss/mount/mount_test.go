//go:build powerloss

package mount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/test/powerloss/disk"
)

func TestMain(m *testing.M) {
	if code, isChild := RunChild(); isChild {
		os.Exit(code)
	}
	if dir := os.Getenv(plainVariable); dir != "" {
		if err := runPlainNATS(dir, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// write writes a file; synced says how much of it is synced: the file, and its name.
func write(t *testing.T, path, text string, file, directory bool) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	if file {
		must(t, f.Sync())
	}
	must(t, f.Close())
	if directory {
		syncDir(t, filepath.Dir(path))
	}
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	must(t, d.Sync(), d.Close())
}

func TestAProgramThatForgetsASyncLosesData(t *testing.T) {
	m := Start(t)
	in := func(name string) string { return filepath.Join(m.Dir, name) }
	write(t, in("both"), "text", true, true)
	write(t, in("no-directory"), "text", true, false)
	m.LosePower(0)
	write(t, in("no-file"), "text", false, true)
	m.LosePower(0)
	if text, err := os.ReadFile(in("both")); err != nil || string(text) != "text" {
		t.Errorf("a file that was synced with its directory has %q, %v", text, err)
	}
	if _, err := os.Stat(in("no-directory")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file without a sync of its directory: %v", err)
	}
	if text, err := os.ReadFile(in("no-file")); err != nil || len(text) != 0 {
		t.Errorf("a file that was not synced, with a synced name, has %q, %v", text, err)
	}
}

func TestARenameIsForgottenAsAWhole(t *testing.T) {
	m := Start(t)
	in := func(name string) string { return filepath.Join(m.Dir, name) }
	write(t, in("a"), "old", true, true)
	write(t, in("a.new"), "new", true, false)
	must(t, os.Rename(in("a.new"), in("a")))
	if text, _ := os.ReadFile(in("a")); string(text) != "new" {
		t.Fatalf("after the rename: %q", text)
	}
	m.LosePower(0)
	if text, err := os.ReadFile(in("a")); err != nil || string(text) != "old" {
		t.Fatalf("after the loss: %q, %v", text, err)
	}
	write(t, in("a.new"), "new", true, false)
	must(t, os.Rename(in("a.new"), in("a")))
	syncDir(t, m.Dir)
	m.LosePower(0)
	if text, err := os.ReadFile(in("a")); err != nil || string(text) != "new" {
		t.Fatalf("after a rename that was synced: %q, %v", text, err)
	}
	if _, err := os.Stat(in("a.new")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the old name: %v", err)
	}
}

func TestARemovalIsForgotten(t *testing.T) {
	m := Start(t)
	path := filepath.Join(m.Dir, "file")
	write(t, path, "text", true, true)
	must(t, os.Remove(path))
	m.LosePower(0)
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestOpenFlagsSync(t *testing.T) {
	m := Start(t)
	for name, flag := range map[string]int{"sync": syscall.O_SYNC, "dsync": syscall.O_DSYNC} {
		path := filepath.Join(m.Dir, name)
		write(t, path, "", true, true)
		f, err := os.OpenFile(path, os.O_WRONLY|flag, 0)
		must(t, err)
		_, err = f.WriteString("text")
		must(t, err, f.Close())
		m.LosePower(0)
		if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestARandomLossTearsWrites(t *testing.T) {
	m := Start(t)
	path := filepath.Join(m.Dir, "file")
	seen := map[string]bool{}
	for seed := uint64(1); seed < 200; seed++ {
		write(t, path, string(bytes.Repeat([]byte("a"), 2048)), true, true)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		for range 2 {
			_, err = f.WriteAt(bytes.Repeat([]byte("b"), 1024), 512)
			must(t, err)
		}
		must(t, f.Close())
		m.LosePower(seed)
		text, err := os.ReadFile(path)
		must(t, err)
		sectors := ""
		for at := 0; at < 2048; at += 512 {
			if !bytes.Equal(text[at:at+512], bytes.Repeat(text[at:at+1], 512)) {
				t.Fatalf("seed %d: a sector is torn", seed)
			}
			sectors += string(text[at])
		}
		seen[sectors] = true
	}
	for _, possible := range []string{"aaaa", "abba", "abaa", "aaba"} {
		if !seen[possible] {
			t.Errorf("no loss left %s; there were %v", possible, seen)
		}
	}
	if len(seen) != 4 {
		t.Errorf("impossible content: %v", seen)
	}
}

func TestAFailedSyncStoresNothingLater(t *testing.T) {
	m := Start(t)
	path := filepath.Join(m.Dir, "file")
	write(t, path, "old", true, true)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("new")
	must(t, err)
	m.SetFaults(disk.Faults{Seed: 1, IOErrors: 1, SyncsOnly: true})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync answered %v", err)
	}
	m.SetFaults(disk.Faults{})
	must(t, f.Sync(), f.Close())
	m.LosePower(0)
	if text, _ := os.ReadFile(path); string(text) != "old" {
		t.Fatalf("the file has %q", text)
	}
}

func TestAFullDiskRefusesWrites(t *testing.T) {
	m := Start(t)
	m.SetSize(1 << 20)
	err := os.WriteFile(filepath.Join(m.Dir, "big"), make([]byte, 2<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("writing 2 MiB to a disk of 1 MiB: %v", err)
	}
}

func TestProgramsOfADebianSystemWork(t *testing.T) {
	m := Start(t)
	script := `set -e
cd "$0"
mkdir -p a/b; echo one > a/b/f; ln a/b/f a/g; ln -s f a/b/l; mv a/b/f a/h; cat a/b/l 2>/dev/null && exit 3
test "$(cat a/g)" = one; test "$(stat -c %h a/g)" = 2; echo two >> a/g; test "$(tail -1 a/h)" = two
chmod 600 a/g; test "$(stat -c %a a/h)" = 600; truncate -s 100 a/g; test "$(stat -c %s a/h)" = 100
fallocate -l 200 a/g; test "$(stat -c %s a/h)" = 200; rm a/g; test "$(stat -c %h a/h)" = 1
rmdir a && exit 4; rm -r a; test -z "$(ls)"
dd if=/dev/urandom of=r bs=64k count=20 2>/dev/null; cp r s; cmp r s; sync`
	if out, err := exec.Command("bash", "-c", script, m.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
