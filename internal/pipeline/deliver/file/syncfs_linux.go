package file

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canSyncFileSystem reports whether syncfs(2) on a file in the folder returns when all
// is durable, and says so where something is not: since Linux 5.8, and of file
// systems that are on disks of this machine.
func canSyncFileSystem(folder string) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil || !sinceLinux58(unix.ByteSliceToString(name.Release[:])) {
		return false
	}
	var system unix.Statfs_t
	if unix.Statfs(folder, &system) != nil {
		return false
	}
	switch system.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

func sinceLinux58(release string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
}

// syncFileSystem syncs the file system of a file that was opened before what is to be
// durable was written: failures since then are reported to it.
func syncFileSystem(f *os.File) error {
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
