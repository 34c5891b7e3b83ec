// Package placeindex has the indexes in memory over places, the numbers of the rows of subscribers
// and subscriptions: HashIndex finds a place by a hash, BySubscriber finds the subscriptions of a
// subscriber, and ActiveSet tells which subscriptions are active. The registry fills them from the
// database when it starts. In each of them one goroutine writes and any number read.
package placeindex

import (
	"sync"

	"fanfare.dev/fanfare"
)

// A HashIndex finds places by a keyed hash. Two keys may have the same hash, so the caller must
// read the row and compare it. The index uses the upper 38 of the 64 bits: of ten million keys,
// about two hundred share a hash with another. An overflow map has the second and further places
// of a hash.
//
// It uses open addressing with 8 bytes a slot. Its shards grow one by one, so that an insert never
// waits until more than a 64th of the index is copied. One goroutine changes it. Any number may
// read at the same time.
type HashIndex struct {
	shards [tableShards]shard
}

const (
	shardBits   = 6
	tableShards = 1 << shardBits
	// A shard holds at most maxLoad of its slots before it grows by half.
	maxLoadPercent = 80
	minSlots       = 16
)

type shard struct {
	mu       sync.RWMutex
	slots    []slot
	used     int
	overflow map[mark][]fanfare.RowID
}

// A mark is the part of a hash that a slot stores: the bits after those that choose the shard.
type mark uint32

func markOf(hash uint64) mark { return mark(hash << shardBits >> 32) }

// A slot is free if its place is 0. Local numbers begin at 1, so no row has this place.
type slot struct {
	mark  mark
	place fanfare.RowID
}

func (t *HashIndex) shard(hash uint64) *shard { return &t.shards[hash>>(64-shardBits)] }

// home is the preferred slot of a mark among n slots. It grows with the mark.
func (m mark) home(n int) int { return int(uint64(m) * uint64(n) >> 32) }

// find returns the slot of m, or the free slot for it.
func (s *shard) find(m mark) int {
	i := m.home(len(s.slots))
	for s.slots[i].place != 0 && s.slots[i].mark != m {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	return i
}

// Lookup returns the first place of hash, 0 if there is none, and the other places.
func (t *HashIndex) Lookup(hash uint64) (first fanfare.RowID, others []fanfare.RowID) {
	s, m := t.shard(hash), markOf(hash)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.used == 0 {
		return 0, nil
	}
	first = s.slots[s.find(m)].place
	if len(s.overflow) > 0 {
		others = append(others, s.overflow[m]...)
	}
	return first, others
}

// Claim adds place under hash if hash has no place yet. Otherwise it returns the places of hash.
func (t *HashIndex) Claim(hash uint64, place fanfare.RowID) (first fanfare.RowID, others []fanfare.RowID) {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.reserve(m)
	if at.place == 0 {
		*at = slot{m, place}
		s.used++
		return 0, nil
	}
	if len(s.overflow) > 0 {
		others = append(others, s.overflow[m]...)
	}
	return at.place, others
}

// reserve returns the slot of m, or a free slot for it, and grows the shard if it is full.
func (s *shard) reserve(m mark) *slot {
	if (s.used+1)*100 > len(s.slots)*maxLoadPercent {
		s.grow()
	}
	return &s.slots[s.find(m)]
}

// Insert adds place to the places of hash and returns the first place that hash had, or 0.
func (t *HashIndex) Insert(hash uint64, place fanfare.RowID) fanfare.RowID {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.reserve(m)
	if at.place != 0 {
		if s.overflow == nil {
			s.overflow = map[mark][]fanfare.RowID{}
		}
		s.overflow[m] = append(s.overflow[m], place)
		return at.place
	}
	*at = slot{m, place}
	s.used++
	return 0
}

// Replace replaces old by place.
func (t *HashIndex) Replace(hash uint64, old, place fanfare.RowID) {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == 0 {
		return
	}
	if at := &s.slots[s.find(m)]; at.place == old {
		at.place = place
		return
	}
	for i, p := range s.overflow[m] {
		if p == old {
			s.overflow[m][i] = place
		}
	}
}

// Remove removes place from the places of hash.
func (t *HashIndex) Remove(hash uint64, place fanfare.RowID) {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == 0 {
		return
	}
	i := s.find(m)
	others := s.overflow[m]
	switch {
	case s.slots[i].place == 0:
	case s.slots[i].place != place:
		for j, p := range others {
			if p == place {
				s.setOverflow(m, append(others[:j:j], others[j+1:]...))
				return
			}
		}
	case len(others) > 0:
		s.slots[i].place = others[0]
		s.setOverflow(m, others[1:])
	default:
		s.vacate(i)
	}
}

func (s *shard) setOverflow(m mark, places []fanfare.RowID) {
	if len(places) == 0 {
		delete(s.overflow, m)
		return
	}
	s.overflow[m] = places
}

// vacate frees slot i and moves the following slots up, so that no gap separates a mark from its
// home.
func (s *shard) vacate(i int) {
	n := len(s.slots)
	for j := i; ; {
		if j++; j == n {
			j = 0
		}
		if s.slots[j].place == 0 {
			break
		}
		// The mark at j may move to i if its home is not in (i, j].
		if h := s.slots[j].mark.home(n); (j-h+n)%n >= (j-i+n)%n {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	s.used--
}

func (s *shard) grow() {
	old := s.slots
	s.slots = make([]slot, max(minSlots, len(old)+len(old)/2))
	for i := range old {
		if old[i].place != 0 {
			s.slots[s.find(old[i].mark)] = old[i]
		}
	}
}
