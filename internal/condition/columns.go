package condition

import (
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
)

// subscriptionColumns keep what a hit tells about a subscription, and its condition, by its
// place: ten bytes each, in pages that exist while one of their places is in
// use. All topics share them, because places are numbered across topics. Slots are
// two bytes more, in pages that exist once one of their places is not due at once.
//
// Pages come and go under the mutex. A member is written only under the write
// lock of the topic that has the place, and read under its read lock.
type subscriptionColumns struct {
	mu     sync.Mutex
	tables [fanfare.Partitions]atomic.Pointer[columnTable]
}

type columnTable []pageEntry

type pageEntry struct {
	page  atomic.Pointer[columnPage]
	slots atomic.Pointer[slotPage] // nil: all are due at once
	live  int                      // places of the page in use; under the mutex
}

// A columnPage is 40 KiB to the byte, so that nothing is lost to rounding.
type columnPage struct {
	subscribers [rowsPerPage]fanfare.RowID
	conditions  [rowsPerPage]conditionRef
	channels    [rowsPerPage]uint16
}

// A slotPage is when the places of a page are due.
type slotPage [rowsPerPage]uint16

// A conditionRef says what a subscription waits for: a filter by its number, or,
// with the highest bit, a row of a rule.
type conditionRef uint32

const rowRefFlag conditionRef = 1 << 31

// page returns the page of a place that is in use.
func (c *subscriptionColumns) page(p fanfare.RowID) *columnPage { return c.entry(p).page.Load() }

// slots returns when the places of the page of a place are due, nil where all are at once.
func (c *subscriptionColumns) slots(p fanfare.RowID) *slotPage { return c.entry(p).slots.Load() }

func (c *subscriptionColumns) entry(p fanfare.RowID) *pageEntry {
	return &(*c.tables[p.Partition()].Load())[p.Local()>>pageBits]
}

// reserve makes sure that the pages of the entries exist and counts them in.
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

// release counts a place out.
func (c *subscriptionColumns) release(p fanfare.RowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := c.ensureEntry(p)
	if slot.live--; slot.live == 0 {
		slot.page.Store(nil)
		slot.slots.Store(nil)
	}
}

// ensureEntry returns where the page of p is kept, making room for it.
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
