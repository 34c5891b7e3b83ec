package dispatch

import (
	"context"
	"sync"
)

const (
	// maxFileBytesAhead is the size of files above which no further batch is loaded.
	maxFileBytesAhead = 64 << 20
	// maxFileBytesOfBatch is the size of files above which the rest of a batch waits until this
	// part is sent.
	maxFileBytesOfBatch = 32 << 20
)

// fileBudget limits the memory for files that belong to single messages of a loop. It is safe for concurrent use. Each batch that is
// loaded at the same time as others may exceed it by maxFileBytesOfBatch.
type fileBudget struct {
	mu    sync.Mutex
	used  int
	freed chan struct{} // closed when memory is released; nil if no goroutine waits
}

// wait returns when a batch may be loaded.
func (b *fileBudget) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if b.used < maxFileBytesAhead {
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add counts files of a batch, or releases them with a negative number.
func (b *fileBudget) add(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used += bytes; bytes < 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}
