package move

import (
	"context"
	"sync"
)

// A gate admits many callers at a time. While it is shut, new callers wait and those
// inside continue. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   chan struct{} // closed when it opens; nil: it is open
	idle   chan struct{} // closed when no caller is inside; nil if nothing waits for that
}

// enter waits until the gate is open. The caller must leave it afterwards.
func (g *gate) enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := g.shut
		if shut == nil {
			g.inside++
			g.mu.Unlock()
			return nil
		}
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add enters a gate that is never shut.
func (g *gate) add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// close shuts the gate for new callers.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// empty waits until no caller is inside.
func (g *gate) empty(ctx context.Context) error {
	g.mu.Lock()
	if g.inside == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closed shuts the gate, and opens it again if the callers inside do not leave before ctx ends.
func (g *gate) closed(ctx context.Context) error {
	g.close()
	if err := g.empty(ctx); err != nil {
		g.open()
		return err
	}
	return nil
}
