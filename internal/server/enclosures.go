package server

import (
	"context"
	"sync"
)

// An allowance is how much of files a dispatch has in letters that were sent by
// themselves, each with files of its own. It belongs to one goroutine that takes and
// waits, and to any that give back.
type allowance struct {
	mu   sync.Mutex
	held int
	room chan struct{} // closed when something is given back; nil: nobody waits
}

const (
	// maxEnclosedAhead is from which size on of such files no further batch is loaded.
	maxEnclosedAhead = 64 << 20
	// maxEnclosedOfBatch is how much a batch may load at a time; the rest of it comes
	// again when this is sent.
	maxEnclosedOfBatch = 32 << 20
)

// wait returns when a batch may be loaded.
func (a *allowance) wait(ctx context.Context) error {
	for {
		a.mu.Lock()
		if a.held < maxEnclosedAhead {
			a.mu.Unlock()
			return nil
		}
		if a.room == nil {
			a.room = make(chan struct{})
		}
		room := a.room
		a.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add counts files of a batch in, and those that were sent out, with their number negative.
func (a *allowance) add(bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held += bytes; bytes < 0 && a.room != nil {
		close(a.room)
		a.room = nil
	}
}
