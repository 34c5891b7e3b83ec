package placeindex

import (
	"sync/atomic"

	"fanfare.dev/fanfare"
)

const (
	activePageBits = 15 // places in a page of 4 KiB
	activePages    = 1 << (32 - activePageBits)
)

// An ActiveSet has one bit for each subscription: whether it is active. Readers take no lock. One
// goroutine writes.
type ActiveSet struct {
	pages [activePages]atomic.Pointer[activePage]
}

type activePage [1 << activePageBits / 64]atomic.Uint64

// Has reports whether the subscription at p is active.
func (l *ActiveSet) Has(p fanfare.RowID) bool {
	page := l.pages[p>>activePageBits].Load()
	if page == nil {
		return false
	}
	i := p & (1<<activePageBits - 1)
	return page[i/64].Load()>>(i%64)&1 != 0
}

// Set marks the subscription at p as active.
func (l *ActiveSet) Set(p fanfare.RowID) {
	slot := &l.pages[p>>activePageBits]
	page := slot.Load()
	if page == nil {
		page = new(activePage)
		slot.Store(page)
	}
	i := p & (1<<activePageBits - 1)
	page[i/64].Or(1 << (i % 64))
}

// Clear marks the subscription at p as not active.
func (l *ActiveSet) Clear(p fanfare.RowID) {
	if page := l.pages[p>>activePageBits].Load(); page != nil {
		i := p & (1<<activePageBits - 1)
		page[i/64].And(^uint64(1 << (i % 64)))
	}
}
