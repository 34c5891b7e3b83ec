package disk

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Disk is a file system in memory. It is safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	root    *Inode
	last    uint64       // number of an inode
	names   []nameChange // that are not stored, in the order in which they were made
	used    int64        // bytes of all files
	size    int64        // bytes of the disk
	faults  Faults
	random  *rand.Rand
	counted Counts
}

// Counts say what a disk has done.
type Counts struct {
	Syncs, DirectorySyncs int64 // that succeeded
	Failed                int64 // calls that failed because of Faults
	Forgotten             int64 // writes, truncations and changes of names that a loss of power undid
}

// Kinds of inodes.
const (
	File      = syscall.S_IFREG
	Directory = syscall.S_IFDIR
	Link      = syscall.S_IFLNK
)

// An Inode is a file, a directory or a symbolic link.
type Inode struct {
	Number uint64
	Kind   uint32 // File, Directory or Link

	mode, uid, gid uint32 // attributes are stored at once
	modified       time.Time
	links          int // names in the current state
	open           int // handles

	data    []byte   // current content of a file; target of a link
	stored  []byte   // content after a loss of power
	changes []change // of data that are not stored, oldest first

	entries       map[string]*Inode // current names of a directory
	storedEntries map[string]*Inode // names after a loss of power
}

// A change is a write, or a truncation if bytes is nil.
type change struct {
	at    int64 // offset, or the new size
	bytes []byte
	lost  bool // a sync of it failed: no later one stores it
}

// A nameChange is a change of names in one or two directories. A rename changes both at once.
type nameChange struct {
	in   []*Inode // directories whose sync stores it
	do   func()   // changes the stored names
	lost bool     // a sync of it failed
}

// defaultSize is the size of a disk.
const defaultSize = 4 << 30

// New returns an empty disk.
func New() *Disk {
	d := &Disk{size: defaultSize, random: rand.New(rand.NewPCG(1, 1))}
	d.root = d.inode(Directory, 0o777, 0, 0)
	d.root.links = 1
	return d
}

func (d *Disk) inode(kind, mode, uid, gid uint32) *Inode {
	d.last++
	n := &Inode{Number: d.last, Kind: kind, mode: mode & 0o7777, uid: uid, gid: gid, modified: time.Now()}
	if kind == Directory {
		n.entries, n.storedEntries = map[string]*Inode{}, map[string]*Inode{}
	}
	return n
}

// Root returns the root directory.
func (d *Disk) Root() *Inode { return d.root }

// Counts returns the counts since the disk was made.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counted
}

// Lookup returns the inode with a name in a directory.
func (d *Disk) Lookup(dir *Inode, name string) (*Inode, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := dir.entries[name]; n != nil {
		return n, 0
	}
	return nil, syscall.ENOENT
}

// An Entry is a name in a directory.
type Entry struct {
	Name string
	*Inode
}

// List returns the names in a directory, sorted.
func (d *Disk) List(dir *Inode) []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Entry, 0, len(dir.entries))
	for name, n := range dir.entries {
		list = append(list, Entry{name, n})
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// changeNames makes a change of names that is stored when one of the directories is synced. set changes a map of names of one
// of the directories.
func (d *Disk) changeNames(do func(of func(*Inode) map[string]*Inode), in ...*Inode) {
	do(func(dir *Inode) map[string]*Inode { return dir.entries })
	for _, dir := range in {
		dir.modified = time.Now()
	}
	d.names = append(d.names, nameChange{in: in, do: func() { do(func(dir *Inode) map[string]*Inode { return dir.storedEntries }) }})
}

// Make creates an inode with a name. target is the target of a link.
func (d *Disk) Make(dir *Inode, name string, kind, mode, uid, gid uint32, target string) (*Inode, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onMake); e != 0 {
		return nil, e
	}
	if dir.entries[name] != nil {
		return nil, syscall.EEXIST
	}
	n := d.inode(kind, mode, uid, gid)
	n.links = 1
	if kind == Link {
		n.data = []byte(target)
		n.stored = n.data
	}
	d.changeNames(func(of func(*Inode) map[string]*Inode) { of(dir)[name] = n }, dir)
	return n, 0
}

// Name gives a file another name.
func (d *Disk) Name(n, dir *Inode, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onMake); e != 0 {
		return e
	}
	if dir.entries[name] != nil {
		return syscall.EEXIST
	}
	n.links++
	d.changeNames(func(of func(*Inode) map[string]*Inode) { of(dir)[name] = n }, dir)
	return 0
}

// Remove removes a name of a file, or with directory true an empty directory.
func (d *Disk) Remove(dir *Inode, name string, directory bool) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := dir.entries[name]
	switch {
	case n == nil:
		return syscall.ENOENT
	case directory && n.Kind != Directory:
		return syscall.ENOTDIR
	case !directory && n.Kind == Directory:
		return syscall.EISDIR
	case directory && len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	if e := d.fault(onRemove); e != 0 {
		return e
	}
	d.changeNames(func(of func(*Inode) map[string]*Inode) { delete(of(dir), name) }, dir)
	d.unlink(n)
	return 0
}

// Flags of Rename, as in renameat2.
const (
	RenameNoReplace = 1
	RenameExchange  = 2
)

// Rename moves a name, and replaces another one. Both happen or neither does, also if power is lost.
func (d *Disk) Rename(from *Inode, name string, to *Inode, newName string, flags uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, old := from.entries[name], to.entries[newName]
	switch {
	case n == nil:
		return syscall.ENOENT
	case flags&^RenameNoReplace != 0:
		return syscall.EINVAL
	case flags&RenameNoReplace != 0 && old != nil:
		return syscall.EEXIST
	case old == n:
		return 0
	case old != nil && old.Kind == Directory && n.Kind != Directory:
		return syscall.EISDIR
	case old != nil && old.Kind != Directory && n.Kind == Directory:
		return syscall.ENOTDIR
	case old != nil && len(old.entries) > 0:
		return syscall.ENOTEMPTY
	}
	if e := d.fault(onRename); e != 0 {
		return e
	}
	d.changeNames(func(of func(*Inode) map[string]*Inode) {
		if of(from)[name] == n { // false in the stored state if the name was not stored, or has changed
			delete(of(from), name)
		}
		of(to)[newName] = n
	}, from, to)
	if old != nil {
		d.unlink(old)
	}
	return 0
}

// unlink counts a name less, and frees the space of a file without a name and without a handle.
func (d *Disk) unlink(n *Inode) {
	n.links--
	d.free(n)
}

func (d *Disk) free(n *Inode) {
	if n.links == 0 && n.open == 0 && n.Kind == File {
		d.used -= int64(len(n.data))
		n.data = nil // stored stays: the removal may be undone
	}
}

// Open counts a handle of a file. With truncate, the file becomes empty.
func (d *Disk) Open(n *Inode, truncate bool) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onOpen); e != 0 {
		return e
	}
	if truncate {
		d.resize(n, 0)
	}
	n.open++
	return 0
}

// Close ends a handle.
func (d *Disk) Close(n *Inode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n.open--
	d.free(n)
}

// Read returns a copy of at most size bytes from an offset on.
func (d *Disk) Read(n *Inode, at int64, size int) ([]byte, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onRead); e != 0 {
		return nil, e
	}
	if at >= int64(len(n.data)) {
		return nil, 0
	}
	return slices.Clone(n.data[at:min(int64(len(n.data)), at+int64(size))]), 0
}

// Write writes bytes at an offset.
func (d *Disk) Write(n *Inode, at int64, bytes []byte) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onWrite); e != 0 {
		return e
	}
	if grown := at + int64(len(bytes)) - int64(len(n.data)); grown > 0 && d.used+grown > d.size {
		return syscall.ENOSPC
	}
	c := change{at: at, bytes: slices.Clone(bytes)}
	before := len(n.data)
	n.data = c.applyTo(n.data)
	d.used += int64(len(n.data) - before)
	n.changes = append(n.changes, c)
	n.modified = time.Now()
	return 0
}

// Resize truncates a file, or extends it with zeros.
func (d *Disk) Resize(n *Inode, size int64) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.fault(onWrite); e != 0 {
		return e
	}
	if d.used+size-int64(len(n.data)) > d.size {
		return syscall.ENOSPC
	}
	d.resize(n, size)
	return 0
}

func (d *Disk) resize(n *Inode, size int64) {
	if int64(len(n.data)) == size {
		return
	}
	c := change{at: size}
	d.used += size - int64(len(n.data))
	n.data = c.applyTo(n.data)
	n.changes = append(n.changes, c)
	n.modified = time.Now()
}

// applyTo returns content after the change. It may reuse its memory.
func (c *change) applyTo(content []byte) []byte {
	if c.bytes == nil {
		return sized(content, c.at)
	}
	if end := c.at + int64(len(c.bytes)); end > int64(len(content)) {
		content = sized(content, end)
	}
	copy(content[c.at:], c.bytes)
	return content
}

// replaceIn returns older changes without those that c replaces: the page cache has one version of each byte, so that the older
// one cannot reach the disk any more.
func (c *change) replaceIn(older []change) (left []change) {
	from, to := c.at, c.at+int64(len(c.bytes))
	for _, o := range older {
		end := o.at + int64(len(o.bytes))
		switch {
		case o.bytes == nil: // a truncation
			continue
		case c.bytes == nil:
			from, to = c.at, max(c.at, end) // all from the new end on
		}
		if o.at < from {
			left = append(left, change{at: o.at, bytes: o.bytes[:min(end, from)-o.at], lost: o.lost})
		}
		if end > to {
			left = append(left, change{at: max(o.at, to), bytes: o.bytes[max(o.at, to)-o.at:], lost: o.lost})
		}
	}
	return left
}

// sized returns content with a new size; new bytes are zero.
func sized(content []byte, size int64) []byte {
	have := int64(len(content))
	if size <= have {
		return content[:size]
	}
	content = slices.Grow(content, int(size-have))[:size]
	clear(content[have:])
	return content
}

// Sync stores the content of a file, or the names in a directory.
func (d *Disk) Sync(n *Inode) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.fault(onSync)
	if n.Kind == Directory {
		d.syncNames(n, e != 0)
		if e == 0 {
			d.counted.DirectorySyncs++
		}
		return e
	}
	var lost []change
	for _, c := range n.changes {
		if c.lost = c.lost || e != 0; c.lost {
			lost = append(lost, c)
			continue
		}
		n.stored = c.applyTo(n.stored)
		lost = c.replaceIn(lost)
	}
	n.changes = lost
	if e == 0 {
		d.counted.Syncs++
	}
	return e
}

// syncNames stores the changes of names in a directory.
func (d *Disk) syncNames(dir *Inode, failed bool) {
	d.names = slices.DeleteFunc(d.names, func(c nameChange) bool {
		if failed || !slices.Contains(c.in, dir) {
			return false
		}
		if !c.lost {
			c.do()
		}
		return true // one that was lost cannot reach the disk after later ones
	})
	if failed {
		for i := range d.names {
			d.names[i].lost = d.names[i].lost || slices.Contains(d.names[i].in, dir)
		}
	}
}

// Attributes are the attributes of an inode.
type Attributes struct {
	Mode, UID, GID uint32
	Size           int64
	Links          int
	Modified       time.Time
}

// Attributes returns the attributes of an inode.
func (d *Disk) Attributes(n *Inode) Attributes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Attributes{Mode: n.Kind | n.mode, UID: n.uid, GID: n.gid, Size: int64(len(n.data)), Links: n.links, Modified: n.modified}
}

// SetAttributes changes attributes that are not nil.
func (d *Disk) SetAttributes(n *Inode, mode, uid, gid *uint32, modified *time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for to, value := range map[*uint32]*uint32{&n.mode: mode, &n.uid: uid, &n.gid: gid} {
		if value != nil {
			*to = *value
		}
	}
	n.mode &= 0o7777
	if modified != nil {
		n.modified = *modified
	}
}

// Space returns the size of the disk and its free bytes.
func (d *Disk) Space() (size, free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size, d.size - d.used
}

// SetSize changes the size of the disk. Programs cannot write while more is used.
func (d *Disk) SetSize(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size = bytes
}

// walk visits the inodes that have a name in the current state, each once.
func (d *Disk) walk(visit func(path string, n *Inode)) {
	seen := map[*Inode]bool{}
	var in func(path string, n *Inode)
	in = func(path string, n *Inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		visit(path, n)
		for _, name := range slices.Sorted(maps.Keys(n.entries)) {
			in(path+"/"+name, n.entries[name])
		}
	}
	in("", d.root)
}
