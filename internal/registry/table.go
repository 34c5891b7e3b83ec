package registry

import (
	"sync"

	"fanfare.dev/fanfare"
)

// A table finds places by a keyed hash. It says where to look and never what is
// there: who asks must read the row and compare, because two keys may have one
// hash. Of the 64 bits the upper 38 count: of ten million keys some two hundred
// share theirs with another. The second and further places of a hash lie in an
// overflow map, which is all but empty.
//
// It is open addressing with 8 bytes a slot, in shards that grow each by
// itself, so that no insert waits for more than a 64th of the table to move.
// One goroutine changes it; any number may read at the same time.
type table struct {
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
	overflow map[mark][]fanfare.Place
}

// A mark is what a slot keeps of a hash: the bits behind those of the shard.
type mark uint32

func markOf(hash uint64) mark { return mark(hash << shardBits >> 32) }

// A slot is free when its place is 0, which is nobody's: locals begin at 1.
type slot struct {
	mark  mark
	place fanfare.Place
}

func (t *table) shard(hash uint64) *shard { return &t.shards[hash>>(64-shardBits)] }

// home is where a mark would like to be in n slots. It grows with the mark.
func (m mark) home(n int) int { return int(uint64(m) * uint64(n) >> 32) }

// find returns the slot of m, or the free one where it belongs.
func (s *shard) find(m mark) int {
	i := m.home(len(s.slots))
	for s.slots[i].place != 0 && s.slots[i].mark != m {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	return i
}

// lookup returns the first place of hash, 0 if there is none, and the others.
func (t *table) lookup(hash uint64) (first fanfare.Place, others []fanfare.Place) {
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

// claim adds place under hash if nothing is there, and else returns what is.
func (t *table) claim(hash uint64, place fanfare.Place) (first fanfare.Place, others []fanfare.Place) {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.room(m)
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

// room returns the slot of m, or a free one where it belongs.
func (s *shard) room(m mark) *slot {
	if (s.used+1)*100 > len(s.slots)*maxLoadPercent {
		s.grow()
	}
	return &s.slots[s.find(m)]
}

// insert adds place under hash, beside what is there already, and returns the
// first place that was there, or 0.
func (t *table) insert(hash uint64, place fanfare.Place) fanfare.Place {
	s, m := t.shard(hash), markOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.room(m)
	if at.place != 0 {
		if s.overflow == nil {
			s.overflow = map[mark][]fanfare.Place{}
		}
		s.overflow[m] = append(s.overflow[m], place)
		return at.place
	}
	*at = slot{m, place}
	s.used++
	return 0
}

// replace puts place where old is.
func (t *table) replace(hash uint64, old, place fanfare.Place) {
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

// remove takes place out from under hash.
func (t *table) remove(hash uint64, place fanfare.Place) {
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

func (s *shard) setOverflow(m mark, places []fanfare.Place) {
	if len(places) == 0 {
		delete(s.overflow, m)
		return
	}
	s.overflow[m] = places
}

// vacate frees slot i and moves the ones behind it up, so that every mark stays
// reachable from its home without a gap.
func (s *shard) vacate(i int) {
	n := len(s.slots)
	for j := i; ; {
		if j++; j == n {
			j = 0
		}
		if s.slots[j].place == 0 {
			break
		}
		// The one at j may move to i if its home is not in (i, j].
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
