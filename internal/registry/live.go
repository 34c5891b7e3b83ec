package registry

import (
	"sync/atomic"

	"fanfare.dev/fanfare"
)

const (
	livePageBits = 15 // places to a page of 4 KiB
	livePages    = 1 << (32 - livePageBits)
)

// A liveSet has one bit for each place: is the subscription active? Reading
// takes no lock. One goroutine writes.
type liveSet struct {
	pages [livePages]atomic.Pointer[livePage]
}

type livePage [1 << livePageBits / 64]atomic.Uint64

func (l *liveSet) has(p fanfare.Place) bool {
	page := l.pages[p>>livePageBits].Load()
	if page == nil {
		return false
	}
	i := p & (1<<livePageBits - 1)
	return page[i/64].Load()>>(i%64)&1 != 0
}

func (l *liveSet) set(p fanfare.Place) {
	slot := &l.pages[p>>livePageBits]
	page := slot.Load()
	if page == nil {
		page = new(livePage)
		slot.Store(page)
	}
	i := p & (1<<livePageBits - 1)
	page[i/64].Or(1 << (i % 64))
}

func (l *liveSet) clear(p fanfare.Place) {
	if page := l.pages[p>>livePageBits].Load(); page != nil {
		i := p & (1<<livePageBits - 1)
		page[i/64].And(^uint64(1 << (i % 64)))
	}
}
