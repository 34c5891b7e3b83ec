package server

import "sync"

// Messages are written one behind the other into slabs, which are used again
// when the batch is done: at forty thousand messages a second, their memory
// would be most of what the collector has to look after.
const (
	slabBytes = 256 << 10
	// slabReserve is what a slab has left at least when a message is begun; a
	// longer one moves to memory of its own.
	slabReserve = 8 << 10
)

type slab [slabBytes]byte

// memory has the slabs that are free.
type memory struct{ free sync.Pool }

func newMemory() *memory {
	return &memory{free: sync.Pool{New: func() any { return new(slab) }}}
}

// page takes a slab for a batch and returns it, empty.
func (l *loaded) page(m *memory) []byte {
	s := m.free.Get().(*slab)
	l.slabs = append(l.slabs, s)
	return s[:0]
}

// release gives the slabs of a batch back. No letter of it is in use any more.
func (m *memory) release(l *loaded) {
	for _, s := range l.slabs {
		m.free.Put(s)
	}
	l.slabs = nil
}
