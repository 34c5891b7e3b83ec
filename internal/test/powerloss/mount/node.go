package mount

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fanfare.dev/fanfare/internal/test/powerloss/disk"
)

// A node is an inode of a disk as FUSE sees it.
type node struct {
	fs.Inode
	disk  *disk.Disk
	inode *disk.Inode
}

// A handle is an open file.
type handle struct{ inode *disk.Inode }

var (
	_ fs.NodeLookuper   = (*node)(nil)
	_ fs.NodeGetattrer  = (*node)(nil)
	_ fs.NodeSetattrer  = (*node)(nil)
	_ fs.NodeCreater    = (*node)(nil)
	_ fs.NodeMkdirer    = (*node)(nil)
	_ fs.NodeSymlinker  = (*node)(nil)
	_ fs.NodeLinker     = (*node)(nil)
	_ fs.NodeUnlinker   = (*node)(nil)
	_ fs.NodeRmdirer    = (*node)(nil)
	_ fs.NodeRenamer    = (*node)(nil)
	_ fs.NodeReaddirer  = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeOpener     = (*node)(nil)
	_ fs.NodeReader     = (*node)(nil)
	_ fs.NodeWriter     = (*node)(nil)
	_ fs.NodeFsyncer    = (*node)(nil)
	_ fs.NodeReleaser   = (*node)(nil)
	_ fs.NodeAllocater  = (*node)(nil)
	_ fs.NodeStatfser   = (*node)(nil)
)

// child returns the node of an inode, and describes it.
func (n *node) child(ctx context.Context, of *disk.Inode, out *fuse.EntryOut) *fs.Inode {
	n.fill(of, &out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, inode: of}, fs.StableAttr{Mode: of.Kind, Ino: of.Number})
}

func (n *node) fill(of *disk.Inode, out *fuse.Attr) {
	a := n.disk.Attributes(of)
	out.Ino, out.Mode, out.Size, out.Nlink = of.Number, a.Mode, uint64(a.Size), uint32(a.Links)
	out.Owner = fuse.Owner{Uid: a.UID, Gid: a.GID}
	out.Blksize, out.Blocks = 4096, uint64((a.Size+511)/512)
	out.SetTimes(&a.Modified, &a.Modified, &a.Modified)
}

// caller returns the user of a request.
func caller(ctx context.Context) (uid, gid uint32) {
	if c, ok := fuse.FromContext(ctx); ok {
		return c.Uid, c.Gid
	}
	return 0, 0
}

// Lookup finds a name.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	found, e := n.disk.Lookup(n.inode, name)
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, found, out), 0
}

// Getattr returns the attributes.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.fill(n.inode, &out.Attr)
	return 0
}

// Setattr changes attributes and the size.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if e := n.disk.Resize(n.inode, int64(size)); e != 0 {
			return e
		}
	}
	var mode, uid, gid *uint32
	var modified *time.Time
	if v, ok := in.GetMode(); ok {
		mode = &v
	}
	if v, ok := in.GetUID(); ok {
		uid = &v
	}
	if v, ok := in.GetGID(); ok {
		gid = &v
	}
	if v, ok := in.GetMTime(); ok {
		modified = &v
	}
	n.disk.SetAttributes(n.inode, mode, uid, gid, modified)
	n.fill(n.inode, &out.Attr)
	return 0
}

func (n *node) make(ctx context.Context, name string, kind, mode uint32, target string, out *fuse.EntryOut) (*fs.Inode, *disk.Inode, syscall.Errno) {
	uid, gid := caller(ctx)
	made, e := n.disk.Make(n.inode, name, kind, mode, uid, gid, target)
	if e != 0 {
		return nil, nil, e
	}
	return n.child(ctx, made, out), made, 0
}

// Create makes a file and opens it.
func (n *node) Create(ctx context.Context, name string, _ uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, made, e := n.make(ctx, name, disk.File, mode, "", out)
	if e != 0 {
		return nil, nil, 0, e
	}
	if e := n.disk.Open(made, false); e != 0 {
		return nil, nil, 0, e
	}
	return child, &handle{made}, fuse.FOPEN_KEEP_CACHE, 0
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child, _, e := n.make(ctx, name, disk.Directory, mode, "", out)
	return child, e
}

// Symlink makes a symbolic link.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child, _, e := n.make(ctx, name, disk.Link, 0o777, target, out)
	return child, e
}

// Link gives a file another name.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	of := target.(*node).inode
	if e := n.disk.Name(of, n.inode, name); e != 0 {
		return nil, e
	}
	return n.child(ctx, of, out), 0
}

// Unlink removes a name of a file.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.disk.Remove(n.inode, name, false)
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.disk.Remove(n.inode, name, true)
}

// Rename moves a name.
func (n *node) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	return n.disk.Rename(n.inode, name, to.(*node).inode, newName, flags)
}

// Readdir lists a directory.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	all := n.disk.List(n.inode)
	list := make([]fuse.DirEntry, len(all))
	for i, one := range all {
		list[i] = fuse.DirEntry{Name: one.Name, Mode: one.Kind, Ino: one.Number}
	}
	return fs.NewListDirStream(list), 0
}

// Readlink returns the target of a link.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	return n.disk.Read(n.inode, 0, 4096)
}

// Open opens a file.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.disk.Open(n.inode, flags&syscall.O_TRUNC != 0); e != 0 {
		return nil, 0, e
	}
	return &handle{n.inode}, fuse.FOPEN_KEEP_CACHE, 0
}

// Read reads from a file.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	bytes, e := n.disk.Read(n.inode, at, len(dest))
	return fuse.ReadResultData(bytes), e
}

// Write writes to a file. The kernel syncs a file that was opened with O_SYNC or O_DSYNC by itself.
func (n *node) Write(_ context.Context, _ fs.FileHandle, bytes []byte, at int64) (uint32, syscall.Errno) {
	if e := n.disk.Write(n.inode, at, bytes); e != 0 {
		return 0, e
	}
	return uint32(len(bytes)), 0
}

// Fsync stores a file or the names in a directory.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return n.disk.Sync(n.inode)
}

// Release ends a handle.
func (n *node) Release(_ context.Context, h fs.FileHandle) syscall.Errno {
	n.disk.Close(h.(*handle).inode)
	return 0
}

// Allocate extends a file with zeros; it cannot punch holes.
func (n *node) Allocate(_ context.Context, _ fs.FileHandle, at, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.EOPNOTSUPP
	}
	if end := int64(at + size); end > n.disk.Attributes(n.inode).Size {
		return n.disk.Resize(n.inode, end)
	}
	return 0
}

// Statfs describes the space of the disk.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const block = 4096
	size, free := n.disk.Space()
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks, out.Bfree, out.Bavail = uint64(size/block), uint64(max(0, free)/block), uint64(max(0, free)/block)
	out.Files, out.Ffree = 1<<20, 1<<20
	return 0
}
