package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A disk is a small file system that only one process and its children see, so
// that it can be full without harm to the machine. It lives as long as the
// process.
type disk struct {
	dir       string
	sizeBytes int
}

const (
	smallDisk  = "FANFARE_E2E_DISK"      // folder to mount the disk on
	smallSize  = "FANFARE_E2E_DISK_SIZE" // in bytes
	smallRun   = "FANFARE_E2E_DISK_RUN"  // the program to run on it
	exitNoDisk = 125
)

// serveOnDisk starts a server whose data directory is a disk of its own.
func serveOnDisk(t *testing.T, sizeBytes int, flags ...string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{t: t, dir: filepath.Join(dir, "data"), database: pgtest.Chosen(t), args: flags, disk: &disk{dir, sizeBytes}}
	s.start()
	return s
}

// command runs the program under test by way of this one, which mounts the disk
// in a new mount namespace and then becomes it. Without root a user namespace
// gives the right to mount.
func (d *disk) command(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	try := func(attributes *syscall.SysProcAttr, run string, args ...string) *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Env = []string{smallDisk + "=" + d.dir, smallSize + "=" + strconv.Itoa(d.sizeBytes), smallRun + "=" + run}
		cmd.SysProcAttr = attributes
		return cmd
	}
	var reasons []error
	for _, attributes := range []func() *syscall.SysProcAttr{
		func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS} },
		func() *syscall.SysProcAttr {
			return &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			}
		},
	} {
		out, err := try(attributes(), "").CombinedOutput()
		if err == nil {
			return try(attributes(), binary, args...)
		}
		reasons = append(reasons, fmt.Errorf("%w %s", err, out))
	}
	t.Fatalf("this test needs a disk that can be full: run it as root, or allow user namespaces: %v", errors.Join(reasons...))
	return nil
}

// path is where a path of a process in its namespace is seen from outside.
func (d *disk) path(pid int, inside string) string {
	return fmt.Sprintf("/proc/%d/root%s", pid, inside)
}

// runOnSmallDisk is what the child of command does.
func runOnSmallDisk() error {
	// Nothing of it shall be seen outside.
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("no private mounts: %w", err)
	}
	if err := syscall.Mount("tmpfs", os.Getenv(smallDisk), "tmpfs", 0, "size="+os.Getenv(smallSize)); err != nil {
		return fmt.Errorf("no disk: %w", err)
	}
	run := os.Getenv(smallRun)
	if run == "" {
		os.Exit(0)
	}
	return syscall.Exec(run, append([]string{run}, os.Args[1:]...), os.Environ())
}

// A ballast is a file that takes up space on the disk of a server.
type ballast struct {
	t    *testing.T
	path string
}

// fill leaves free only about so many bytes of the server's disk.
func (s *server) fill(leaveBytes int64) *ballast {
	s.t.Helper()
	b := &ballast{s.t, s.disk.path(s.cmd.Process.Pid, filepath.Join(s.disk.dir, "ballast"))}
	f, err := os.Create(b.path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for s.free() > leaveBytes {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return b
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
	return b
}

// drop gives the space back.
func (b *ballast) drop() {
	b.t.Helper()
	if err := os.Remove(b.path); err != nil {
		b.t.Fatal(err)
	}
}

// free is how many bytes the server's disk has left.
func (s *server) free() int64 {
	s.t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(s.disk.path(s.cmd.Process.Pid, s.disk.dir), &stat); err != nil {
		s.t.Fatal(err)
	}
	return int64(stat.Bavail) * stat.Bsize
}
