package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/test/powerloss/disk"
)

// A Mount is a mounted disk that another process holds.
type Mount struct {
	Dir string

	t     testing.TB
	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// Start mounts an empty disk until the test ends. TestMain of the test must call RunChild.
func Start(t testing.TB) *Mount {
	t.Helper()
	dir, err := os.MkdirTemp("", "fanfare-disk-") //nolint:usetesting // PostgreSQL has a user of its own, to whom the directories of t.TempDir are closed
	if err == nil {
		t.Cleanup(func() { _ = os.Remove(dir) })
		err = os.Chmod(dir, 0o755) //nolint:gosec // the same
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &Mount{Dir: dir, t: t}
	m.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^$") //nolint:gosec // this program; it ends after the programs that use the disk
	m.cmd.Env = append(os.Environ(), childVariable+"="+m.Dir)
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the test does not end it before its users
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.lines = bufio.NewReader(out)
	t.Cleanup(m.stop)
	if _, err := m.read(); err != nil {
		t.Fatalf("mounting a disk: %v", err)
	}
	return m
}

// stop unmounts the disk and ends its process. Programs that use it must have ended.
func (m *Mount) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.in.Close()
	if err := m.cmd.Wait(); err != nil {
		m.t.Errorf("the process of the disk: %v", err)
		_ = syscall.Unmount(m.Dir, syscall.MNT_DETACH)
	}
}

func (m *Mount) read() (r reply, err error) {
	line, err := m.lines.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("the process of the disk has ended: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (m *Mount) do(c *command) reply {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := json.Marshal(c)
	if err == nil {
		_, err = m.in.Write(append(text, '\n'))
	}
	var r reply
	if err == nil {
		r, err = m.read()
	}
	if err != nil {
		m.t.Fatalf("disk: %s: %v", c.Do, err)
	}
	return r
}

// LosePower unmounts the disk, makes it forget (see disk.LosePower) and mounts it again. Programs that use it must have ended.
func (m *Mount) LosePower(seed uint64) { m.t.Helper(); m.do(&command{Do: "lose", Seed: seed}) }

// Settle stores everything that programs have written.
func (m *Mount) Settle() { m.t.Helper(); m.do(&command{Do: "settle"}) }

// SetFaults sets the faults of the disk.
func (m *Mount) SetFaults(f disk.Faults) { m.t.Helper(); m.do(&command{Do: "faults", Faults: f}) }

// SetSize sets the size of the disk in bytes.
func (m *Mount) SetSize(bytes int64) { m.t.Helper(); m.do(&command{Do: "size", Bytes: bytes}) }

// FlipBit changes one bit of a file whose path begins with one of the texts.
func (m *Mount) FlipBit(seed uint64, under ...string) disk.Flip {
	m.t.Helper()
	return m.do(&command{Do: "flip", Seed: seed, Under: under}).Flip
}

// Counts returns the counts of the disk.
func (m *Mount) Counts() disk.Counts { m.t.Helper(); return m.do(&command{Do: "counts"}).Counts }
