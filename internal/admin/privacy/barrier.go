package privacy

import (
	"context"
	"sync"
)

// A Barrier lets an erasure wait for the requests that have begun before it. Requests that begin later do not wait,
// and the erasure does not wait for them.
type Barrier struct {
	mu     sync.Mutex
	inside *sync.WaitGroup
}

// Enter begins a request; the caller calls leave at its end.
func (b *Barrier) Enter() (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside == nil {
		b.inside = new(sync.WaitGroup)
	}
	b.inside.Add(1)
	return b.inside.Done
}

// Wait returns when all requests that have begun are finished, or when ctx ends.
func (b *Barrier) Wait(ctx context.Context) error {
	b.mu.Lock()
	before := b.inside
	b.inside = new(sync.WaitGroup)
	b.mu.Unlock()
	if before == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		before.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
