package registry

import (
	"slices"
	"sync"

	"fanfare.dev/fanfare"
)

// belongings finds the subscriptions of a subscriber's row, active and ended.
// They lie in the row's partition, and each knows the one before it of the same
// row: four bytes for each subscription, and four for each row. An index in the
// store would cost an import nine tenths of its speed.
//
// One goroutine adds; any number may read at the same time.
type belongings struct {
	parts [fanfare.Partitions]struct {
		mu     sync.RWMutex
		last   []uint32 // by local number of the row: its newest subscription
		before []uint32 // by local number of the subscription
	}
}

// add enters a new subscription of a row.
func (b *belongings) add(row, subscription fanfare.Place) {
	part := &b.parts[row.Partition()]
	part.mu.Lock()
	defer part.mu.Unlock()
	part.last = reach(part.last, row.Local())
	part.before = reach(part.before, subscription.Local())
	part.before[subscription.Local()] = part.last[row.Local()]
	part.last[row.Local()] = subscription.Local()
}

// reach makes list long enough for index i.
func reach(list []uint32, i uint32) []uint32 {
	if n := int(i) + 1 - len(list); n > 0 {
		list = slices.Grow(list, n)[:len(list)+n]
	}
	return list
}

// of returns the subscriptions of a row, ascending.
func (b *belongings) of(row fanfare.Place) []fanfare.Place {
	part := &b.parts[row.Partition()]
	part.mu.RLock()
	defer part.mu.RUnlock()
	if int(row.Local()) >= len(part.last) {
		return nil
	}
	var places []fanfare.Place
	for local := part.last[row.Local()]; local != 0; local = part.before[local] { // locals begin at 1
		places = append(places, fanfare.NewPlace(row.Partition(), local))
	}
	slices.Reverse(places)
	return places
}
