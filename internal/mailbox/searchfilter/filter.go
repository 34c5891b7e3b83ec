package searchfilter

import (
	"math/bits"
	"unicode/utf8"
)

// Version is the version of the fold, of the runs and of the texts that are taken from messages. A filter of another version says nothing.
// It must change with each change of them.
const Version = 1

const (
	short, long = 3, 5 // characters in a run

	bitsPerRun = 6
	maxRuns    = 1 << 16 // in a message; with more, its filter excludes nothing
)

// A Filter is the filter of a message. An empty filter excludes nothing.
type Filter []byte

// A Builder makes the filter of one message after the other. The zero value is ready. It is for one goroutine.
type Builder struct {
	folder folder
	runs   runSet
}

// Add adds a text of the message.
func (b *Builder) Add(text string) {
	var w window
	b.folder.each(text, func(r rune) {
		if b.runs.count <= maxRuns {
			w.add(r, b.runs.add)
		}
	})
}

// Filter returns the filter of the texts that were added since the last call.
func (b *Builder) Filter() Filter {
	defer b.runs.clear()
	if b.runs.count > maxRuns {
		return Filter{}
	}
	filter := make(Filter, (b.runs.count*bitsPerRun+7)/8+8)
	for _, run := range b.runs.slots {
		if run != 0 {
			first, second := filter.places(run)
			filter[first/8] |= 1 << (first % 8)
			filter[second/8] |= 1 << (second % 8)
		}
	}
	return filter
}

// places returns the two bits that stand for a run.
func (f Filter) places(run uint64) (first, second uint64) {
	n := uint64(len(f)) * 8
	return run >> 32 * n >> 32, run & (1<<32 - 1) * n >> 32
}

// A Pattern is a text that is searched. The zero value is in every message.
type Pattern struct{ runs []uint64 }

// NewPattern prepares a text. A text that is not valid UTF-8, or that has fewer than three characters after the fold, is in every message.
func NewPattern(text string) Pattern {
	if !utf8.ValidString(text) {
		return Pattern{}
	}
	var n Pattern
	var w window
	new(folder).each(text, func(r rune) { w.add(r, func(run uint64) { n.runs = append(n.runs, run) }) })
	return n
}

// IsEmpty reports whether the pattern excludes no message.
func (n Pattern) IsEmpty() bool { return len(n.runs) == 0 }

// MayContain reports whether the message of a filter can contain a pattern.
func (f Filter) MayContain(n Pattern) bool {
	if len(f) == 0 {
		return true
	}
	for _, run := range n.runs {
		first, second := f.places(run)
		if f[first/8]&(1<<(first%8)) == 0 || f[second/8]&(1<<(second%8)) == 0 {
			return false
		}
	}
	return true
}

// A window has the last characters of a text.
type window struct {
	last  [long]rune // the newest is the last
	count int
}

// add adds a character and reports the runs that end with it.
func (w *window) add(r rune, report func(run uint64)) {
	copy(w.last[:], w.last[1:])
	w.last[long-1] = r
	w.count++
	if w.count < short {
		return
	}
	run := mix(uint64(w.last[2])<<42 | uint64(w.last[3])<<21 | uint64(w.last[4]))
	report(run | 1) // not 0, which is an empty slot
	if w.count >= long {
		report(mix(run^(uint64(w.last[0])<<21|uint64(w.last[1]))*0x9e3779b97f4a7c15) | 1)
	}
}

// mix distributes the bits of a number (the finalizer of splitmix64).
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// A runSet is a set of runs with open addressing: a map is several times slower.
type runSet struct {
	slots []uint64 // 0: empty
	count int
}

// minSlots is the size of a set that is not empty.
const minSlots = 1 << 8

func (s *runSet) add(run uint64) {
	if 2*s.count >= len(s.slots) {
		s.grow()
	}
	if s.put(run) {
		s.count++
	}
}

func (s *runSet) put(run uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for at := bits.RotateLeft64(run, 17) & mask; ; at = (at + 1) & mask {
		switch s.slots[at] {
		case run:
			return false
		case 0:
			s.slots[at] = run
			return true
		}
	}
}

func (s *runSet) grow() {
	old := s.slots
	s.slots = make([]uint64, max(minSlots, 2*len(old)))
	for _, run := range old {
		if run != 0 {
			s.put(run)
		}
	}
}

// clear removes all runs, and gives back the memory that only a large message needs.
func (s *runSet) clear() {
	s.count = 0
	if len(s.slots) > 1<<15 {
		s.slots = nil
		return
	}
	clear(s.slots)
}
