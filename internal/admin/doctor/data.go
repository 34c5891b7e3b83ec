package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slowSync is the sync duration above which doctor warns. Each group of requests waits for one sync.
const slowSync = 30 * time.Millisecond

// data checks the data directory. held reports whether a server uses it.
func (o *Options) data(r *Report) (held bool) {
	dir := o.Config.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := existing(dir)
		if unix.Access(parent, unix.W_OK) != nil {
			r.wrong("data", "create "+dir+", owned by the user that runs the server", "%s does not exist, and this user cannot write to %s", dir, parent)
			return false
		}
		r.ok("data", "%s does not exist yet; the server creates it", dir)
		o.keys(r, dir)
		o.disk(r, parent)
		return false
	case err != nil:
		r.wrong("data", "set data_dir to a folder that the user that runs the server can access, and run this command as that user", "%v", err)
		return false
	case !info.IsDir():
		r.wrong("data", "set data_dir to a folder", "%s is not a folder", dir)
		return false
	}
	o.rights(r, dir, info)
	held = locked(filepath.Join(dir, "lock"))
	o.keys(r, dir)
	o.disk(r, dir)
	return held
}

// existing returns the nearest existing folder above dir.
func existing(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		if above := filepath.Dir(dir); above != dir {
			dir = above
			continue
		}
		return dir
	}
}

func (o *Options) rights(r *Report, dir string, info fs.FileInfo) {
	owner := "somebody"
	var uid uint32
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		uid, owner = stat.Uid, userName(stat.Uid)
	}
	switch mode := info.Mode().Perm(); {
	case unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
		r.wrong("data", "run the server and this command as "+owner+", or change the owner of the folder", "%s belongs to %s (mode %04o), and this user cannot write to it", dir, owner, mode)
	case mode&0o077 != 0:
		r.warn("data", "chmod 700 "+dir, "other users can read %s (mode %04o): it contains addresses and keys", dir, mode)
	case int(uid) != os.Geteuid() && os.Geteuid() != 0:
		r.warn("data", "run the server as "+owner, "%s belongs to %s, not to this user", dir, owner)
	default:
		r.ok("data", "%s belongs to %s, and other users have no access", dir, owner)
	}
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}

// locked reports whether a server uses the directory.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return errors.Is(err, syscall.EWOULDBLOCK)
	}
	return false // closing the file releases the lock
}

// keys checks the modes of files that must be secret.
func (o *Options) keys(r *Report, dir string) {
	good := true
	for _, path := range []string{filepath.Join(dir, "admin.key"), filepath.Join(dir, "link.key"), filepath.Join(dir, "suppression.key"), filepath.Join(dir, "webhook.key"), filepath.Join(dir, "seal.key"), o.Config.TLSKey, o.Config.NATSFile, o.Config.DBPasswordFile} {
		info, err := os.Stat(path)
		if path == "" || err != nil {
			continue
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			good = false
			r.wrong("keys", "chmod 600 "+path+", and replace the key if other users have had access to this machine", "other users can read %s (mode %04o)", path, mode)
		}
	}
	if good {
		r.ok("keys", "other users cannot read the key files")
	}
}

// unfit lists the file systems on which data is not durable.
var unfit = map[int64]struct{ name, why string }{
	0x6969:     {"nfs", "locks and syncs of a network file system are not reliable enough for SQLite"},
	0x517b:     {"smb", "locks and syncs of a network file system are not reliable enough for SQLite"},
	0xff534d42: {"cifs", "locks and syncs of a network file system are not reliable enough for SQLite"},
	0xfe534d42: {"smb2", "locks and syncs of a network file system are not reliable enough for SQLite"},
	0x01021997: {"9p", "it is a folder shared by the host of a virtual machine: syncs may not reach the disk"},
	0x01021994: {"tmpfs", "it is in memory: all data is lost when the machine restarts"},
	0x858458f6: {"ramfs", "it is in memory: all data is lost when the machine restarts"},
	0x794c7630: {"overlayfs", "it is a container layer: all data is lost when the container is removed"},
	0x65735546: {"fuse", "whether syncs reach the disk depends on the FUSE program"},
}

var named = map[int64]string{0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs"}

// disk checks the file system, its free space, and the duration of a sync.
func (o *Options) disk(r *Report, dir string) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		r.wrong("disk", "", "%s: %v", dir, err)
		return
	}
	kind := stat.Type & 0xffffffff
	if bad, ok := unfit[kind]; ok {
		r.warn("disk", "put data_dir on a local disk", "%s is on %s: %s", dir, bad.name, bad.why)
	} else {
		r.ok("disk", "%s is on %s", dir, kindName(kind))
	}
	free, floor := int64(stat.Bavail)*stat.Bsize, o.Config.DiskFloor.Bytes(int64(stat.Blocks)*stat.Bsize)
	switch {
	case free < floor:
		r.wrong("free disk", "free some space, shorten retention_days or lower disk_floor", "%s free, less than the floor of %s: the server refuses new events", size(free), size(floor))
	case free < 2*floor:
		r.warn("free disk", "free some space, or shorten retention_days", "%s free, close to the floor of %s", size(free), size(floor))
	default:
		r.ok("free disk", "%s free, the floor is %s", size(free), size(floor))
	}
	if unix.Access(dir, unix.W_OK) == nil {
		o.sync(r, dir)
	}
}

func kindName(kind int64) string {
	if name := named[kind]; name != "" {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", kind)
}

// syncs is how many syncs are measured. The median is reported.
const syncs = 7

func (o *Options) sync(r *Report, dir string) {
	took, err := timeSync(dir, o.Now)
	switch {
	case err != nil:
		r.wrong("sync", "check the disk", "cannot write and sync a file: %v", err)
	case took > slowSync && o.Config.Fsync():
		r.warn("sync", "use a disk with a write cache that survives a power loss, or set durability to relaxed", "a sync takes %v, which delays each group of requests by that time", took.Round(100*time.Microsecond))
	default:
		r.ok("sync", "a sync takes %v", took.Round(10*time.Microsecond))
	}
}

func timeSync(dir string, now func() time.Time) (took time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 4096)
	var all []time.Duration
	for range syncs {
		begun := now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, now().Sub(begun))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func size(n int64) string {
	if n < 10e9 {
		return fmt.Sprintf("%d MB", n/1e6)
	}
	return fmt.Sprintf("%d GB", n/1e9)
}
