package mount

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fanfare.dev/fanfare/internal/test/powerloss/disk"
)

// A command is one line that a test sends to the process that holds the disk.
type command struct {
	Do     string      `json:"do"` // lose, settle, faults, size, flip or counts
	Seed   uint64      `json:"seed,omitempty"`
	Faults disk.Faults `json:"faults,omitzero"`
	Bytes  int64       `json:"bytes,omitempty"`
	Under  []string    `json:"under,omitempty"` // flip: beginnings of the paths of files
}

// A reply answers a command.
type reply struct {
	Error  string      `json:"error,omitempty"`
	Counts disk.Counts `json:"counts,omitzero"`
	Flip   disk.Flip   `json:"flip,omitzero"`
}

// cacheFor is how long the kernel remembers names and attributes, which only it changes.
const cacheFor = time.Second

// serve mounts an empty disk at a directory and carries out commands until there are no more.
func serve(dir string, in io.Reader, out io.Writer) error {
	d := disk.New()
	server, err := mountDisk(d, dir)
	if err != nil {
		return err
	}
	answer := json.NewEncoder(out)
	if err := answer.Encode(reply{}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		var r reply
		switch c.Do {
		case "lose":
			if err := unmount(server, dir); err != nil {
				r.Error = err.Error()
				break
			}
			d.LosePower(c.Seed)
			if server, err = mountDisk(d, dir); err != nil {
				return err
			}
		case "settle":
			d.Settle()
		case "faults":
			d.SetFaults(c.Faults)
		case "size":
			d.SetSize(c.Bytes)
		case "flip":
			f, ok := d.FlipBit(c.Seed, func(path string) bool {
				for _, begin := range c.Under {
					if strings.HasPrefix(path, begin) {
						return true
					}
				}
				return false
			})
			if r.Flip = f; !ok {
				r.Error = "no file to change"
			}
		case "counts":
		default:
			return fmt.Errorf("unknown command %q", c.Do)
		}
		r.Counts = d.Counts()
		if err := answer.Encode(r); err != nil {
			return err
		}
	}
	return unmount(server, dir)
}

func mountDisk(d *disk.Disk, dir string) (*fuse.Server, error) {
	keep := cacheFor
	return fs.Mount(dir, &node{disk: d, inode: d.Root()}, &fs.Options{
		EntryTimeout: &keep, AttrTimeout: &keep, NullPermissions: true,
		RootStableAttr: &fs.StableAttr{Ino: d.Root().Number, Mode: disk.Directory},
		MountOptions:   fuse.MountOptions{DirectMountStrict: true, AllowOther: true, Name: "powerloss", FsName: "powerloss", MaxWrite: 1 << 20, DirectMountFlags: syscall.MS_NOSUID | syscall.MS_NODEV},
	})
}

// unmount ends a mount. A program that was just killed may hold it for a moment.
func unmount(server *fuse.Server, dir string) error {
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err = syscall.Unmount(dir, 0); err == nil {
			server.Wait()
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("unmounting %s: %w", dir, err)
}

// childVariable names the directory to mount in the environment of the process that holds the disk.
const childVariable = "FANFARE_POWERLOSS_MOUNT"

// RunChild holds a disk until its test ends if this process was started by Start, and returns the exit code of the process. TestMain
// calls it first.
func RunChild() (code int, isChild bool) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		return 0, false
	}
	if err := serve(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "powerloss:", err)
		return 1, true
	}
	return 0, true
}
