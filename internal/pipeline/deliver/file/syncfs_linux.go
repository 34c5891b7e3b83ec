package file

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canSyncFileSystem reports whether syncfs(2) returns when all data of the folder's file
// system is durable, and reports errors. It does since Linux 5.8 for file systems on
// local disks.
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

// syncFileSystem syncs the file system of a file. The file must have been opened before the
// data was written: it gets the errors since then.
func syncFileSystem(f *os.File) error {
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
