package condition

import (
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
)

// subscriptionColumns store the subscriber, channel, condition and slot of each subscription by its
// id. They take ten bytes for each subscription, in pages that exist while one of their ids is in
// use. All topics share them, because ids are unique across topics. Slots take two more bytes, in
// pages that are created when a subscription of the page is not due immediately.
//
// The mutex protects the lists of pages. A member is written under the write lock of the topic that
// has the subscription, and read under its read lock.
type subscriptionColumns struct {
	mu     sync.Mutex
	tables [fanfare.Partitions]atomic.Pointer[columnTable]
}

type columnTable []pageEntry

type pageEntry struct {
	page  atomic.Pointer[columnPage]
	slots atomic.Pointer[slotPage] // nil: all are due immediately
	live  int                      // number of subscriptions in the page; under the mutex
}

// A columnPage has exactly 40 KiB, so that the allocator does not round up its size.
type columnPage struct {
	subscribers [rowsPerPage]fanfare.RowID
	conditions  [rowsPerPage]conditionRef
	channels    [rowsPerPage]uint16
}

// A slotPage holds when the subscriptions of a page are due.
type slotPage [rowsPerPage]uint16

// A conditionRef refers to the condition of a subscription: a filter by its number or, with the
// highest bit, a row of a rule.
type conditionRef uint32

const rowRefFlag conditionRef = 1 << 31

// page returns the page of a subscription that is in use.
func (c *subscriptionColumns) page(p fanfare.RowID) *columnPage { return c.entry(p).page.Load() }

// slots returns when the subscriptions of a page are due; nil if all are due immediately.
func (c *subscriptionColumns) slots(p fanfare.RowID) *slotPage { return c.entry(p).slots.Load() }

func (c *subscriptionColumns) entry(p fanfare.RowID) *pageEntry {
	return &(*c.tables[p.Partition()].Load())[p.Local()>>pageBits]
}

// reserve creates the pages of the entries and counts the entries.
func (c *subscriptionColumns) reserve(entries []Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range entries {
		slot := c.ensureEntry(entries[i].Place)
		if slot.live == 0 {
			slot.page.Store(new(columnPage))
		}
		if entries[i].Slot != 0 && slot.slots.Load() == nil {
			slot.slots.Store(new(slotPage))
		}
		slot.live++
	}
}

// release decrements the count for a subscription.
func (c *subscriptionColumns) release(p fanfare.RowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := c.ensureEntry(p)
	if slot.live--; slot.live == 0 {
		slot.page.Store(nil)
		slot.slots.Store(nil)
	}
}

// ensureEntry returns the entry for the page of p. It extends the table if necessary.
func (c *subscriptionColumns) ensureEntry(p fanfare.RowID) *pageEntry {
	number := int(p.Local() >> pageBits)
	table := c.tables[p.Partition()].Load()
	if table == nil || len(*table) <= number {
		wider := make(columnTable, max(number+1, 8))
		if table != nil {
			wider = make(columnTable, max(number+1, 2*len(*table)))
			for i := range *table {
				wider[i].page.Store((*table)[i].page.Load())
				wider[i].slots.Store((*table)[i].slots.Load())
				wider[i].live = (*table)[i].live
			}
		}
		table = &wider
		c.tables[p.Partition()].Store(table)
	}
	return &(*table)[number]
}
