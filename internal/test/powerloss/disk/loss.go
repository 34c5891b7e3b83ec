package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sectorBytes and pageBytes are the units in which a disk and the page cache write.
const (
	sectorBytes = 512
	pageBytes   = 4096
)

// LosePower makes the disk forget. With seed 0 it forgets everything that was not stored. Otherwise it keeps a random part of
// it, which the seed determines. No program may have the disk mounted.
func (d *Disk) LosePower(seed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var random *rand.Rand
	if seed != 0 {
		random = rand.New(rand.NewPCG(seed, seed))
	}
	all := d.everyInode()
	share := portion(random)
	for _, c := range d.names {
		if random != nil && random.Float64() < share {
			c.do()
		} else {
			d.counted.Forgotten++
		}
	}
	d.names = nil
	for _, n := range all {
		switch n.Kind {
		case File:
			d.loseContent(n, random)
		case Directory:
			n.entries = maps.Clone(n.storedEntries)
		}
		n.links, n.open = 0, 0
	}
	d.root.links = 1
	d.used = 0
	d.walk(func(_ string, n *Inode) {
		for _, named := range n.entries {
			named.links++
		}
		if n.Kind == File {
			d.used += int64(len(n.data))
		}
	})
}

// Settle stores everything, as a system does that has been idle for a while.
func (d *Disk) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.names {
		c.do()
	}
	d.names = nil
	d.walk(func(_ string, n *Inode) {
		if n.Kind == File {
			n.stored, n.changes = slices.Clone(n.data), nil
		}
	})
}

// everyInode returns the inodes of both states, in the order of their numbers.
func (d *Disk) everyInode() []*Inode {
	seen := map[*Inode]bool{}
	var add func(n *Inode)
	add = func(n *Inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, names := range []map[string]*Inode{n.entries, n.storedEntries} {
			for _, named := range names {
				add(named)
			}
		}
	}
	add(d.root)
	for _, c := range d.names { // an inode between two names
		for _, dir := range c.in {
			add(dir)
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b *Inode) int { return int(a.Number) - int(b.Number) })
}

// portion returns the share of changes that are kept: often none or nearly all, because a loss between two changes that
// depend on each other shows most.
func portion(random *rand.Rand) float64 {
	if random == nil {
		return 0
	}
	return []float64{0, 0.1, 0.5, 0.9, 1}[random.IntN(5)]
}

// loseContent replaces the content of a file by the stored one and a random part of the changes.
func (d *Disk) loseContent(n *Inode, random *rand.Rand) {
	content := slices.Clone(n.stored)
	share := portion(random)
	unit := 0 // of torn writes; 0: writes are kept as a whole
	if random != nil {
		unit = []int{0, sectorBytes, pageBytes}[random.IntN(3)]
	}
	for _, c := range n.changes {
		switch {
		case random == nil, (c.bytes == nil || unit == 0) && random.Float64() >= share:
			d.counted.Forgotten++
		case c.bytes == nil || unit == 0:
			content = c.applyTo(content)
		default:
			for _, torn := range c.torn(int64(unit)) {
				if random.Float64() < share {
					content = torn.applyTo(content)
				} else {
					d.counted.Forgotten++
				}
			}
		}
	}
	n.data, n.stored, n.changes = content, slices.Clone(content), nil
}

// torn divides a write at the boundaries of units.
func (c *change) torn(unit int64) (parts []change) {
	for at, bytes := c.at, c.bytes; len(bytes) > 0; {
		n := min(int64(len(bytes)), unit-at%unit)
		parts = append(parts, change{at: at, bytes: bytes[:n]})
		at, bytes = at+n, bytes[n:]
	}
	return parts
}

// A Flip is a bit that was changed.
type Flip struct {
	Path string
	Byte int64
	Bit  uint
}

// FlipBit changes a random bit of a file that match accepts, weighted by size. ok is false if there is none.
func (d *Disk) FlipBit(seed uint64, match func(path string) bool) (f Flip, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	type file struct {
		path string
		*Inode
	}
	var all []file
	var total int64
	d.walk(func(path string, n *Inode) {
		if n.Kind == File && len(n.data) > 0 && match(path) {
			all, total = append(all, file{path, n}), total+int64(len(n.data))
		}
	})
	if total == 0 {
		return f, false
	}
	random := rand.New(rand.NewPCG(seed, seed))
	at := random.Int64N(total)
	for _, one := range all {
		if at >= int64(len(one.data)) {
			at -= int64(len(one.data))
			continue
		}
		f = Flip{Path: one.path, Byte: at, Bit: random.UintN(8)}
		one.data[at] ^= 1 << f.Bit
		if at < int64(len(one.stored)) {
			one.stored[at] = one.data[at]
		}
		return f, true
	}
	return f, false
}
