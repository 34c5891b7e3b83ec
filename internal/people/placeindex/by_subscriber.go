package placeindex

import (
	"slices"
	"sync"

	"fanfare.dev/fanfare"
)

// BySubscriber lists the subscriptions of a subscriber's row, active and ended ones. They are in
// the same partition as the row, and each subscription links to the previous one of its row: four
// bytes for each subscription and four for each row. An index in the database would make an import
// ten times slower.
//
// One goroutine adds. Any number may read at the same time.
type BySubscriber struct {
	parts [fanfare.Partitions]struct {
		mu     sync.RWMutex
		last   []uint32 // by local number of the row: its newest subscription
		before []uint32 // by local number of the subscription
	}
}

// Add adds a new subscription of a row.
func (b *BySubscriber) Add(row, subscription fanfare.RowID) {
	part := &b.parts[row.Partition()]
	part.mu.Lock()
	defer part.mu.Unlock()
	part.last = grown(part.last, row.Local())
	part.before = grown(part.before, subscription.Local())
	part.before[subscription.Local()] = part.last[row.Local()]
	part.last[row.Local()] = subscription.Local()
}

// grown returns list, extended with zeros so that it has an element i.
func grown(list []uint32, i uint32) []uint32 {
	if n := int(i) + 1 - len(list); n > 0 {
		list = slices.Grow(list, n)[:len(list)+n]
	}
	return list
}

// Of returns the subscriptions of a row in ascending order.
func (b *BySubscriber) Of(row fanfare.RowID) []fanfare.RowID {
	part := &b.parts[row.Partition()]
	part.mu.RLock()
	defer part.mu.RUnlock()
	if int(row.Local()) >= len(part.last) {
		return nil
	}
	var places []fanfare.RowID
	for local := part.last[row.Local()]; local != 0; local = part.before[local] { // local numbers begin at 1
		places = append(places, fanfare.NewRowID(row.Partition(), local))
	}
	slices.Reverse(places)
	return places
}
