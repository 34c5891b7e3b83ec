package server

import (
	"context"
	"sync"
)

// A passage is a stretch that many go through at the same time, and of which one
// may want to know when all who were in it are out. Who comes later is not
// awaited, and waits for nobody.
type passage struct {
	mu     sync.Mutex
	inside *sync.WaitGroup
}

// enter returns how to leave.
func (p *passage) enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside == nil {
		p.inside = new(sync.WaitGroup)
	}
	p.inside.Add(1)
	return p.inside.Done
}

// await returns when all who are inside now have left, or ctx ends; then it is
// asked again, by the same one.
func (p *passage) await(ctx context.Context) error {
	p.mu.Lock()
	before := p.inside
	p.inside = new(sync.WaitGroup)
	p.mu.Unlock()
	if before == nil {
		return nil
	}
	out := make(chan struct{})
	go func() {
		before.Wait()
		close(out)
	}()
	select {
	case <-out:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
