package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
)

// A requestCount counts the running requests that may change something, so that a stop can
// let them end before it closes what they use.
type requestCount struct {
	mu       sync.Mutex
	underWay *sync.WaitGroup // of the requests that came before Drain
}

// enter counts a request until the function that it returns is called.
func (c *requestCount) enter(r *http.Request) (leave func()) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay.Add(1)
	return c.underWay.Done
}

// swap returns the count of the requests so far, and begins a new one.
func (c *requestCount) swap() *sync.WaitGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.underWay
	c.underWay = new(sync.WaitGroup)
	return before
}

// Drain is Stop that waits, until ctx ends, for the running requests that may change
// something: so an import that a stop cuts short is in the audit. It does not wait for
// requests that come later.
func (a *API) Drain(ctx context.Context) {
	a.Stop()
	before, done := a.changes.swap(), make(chan struct{})
	go func() {
		before.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// failureLevel is the level at which the failure of a request is logged: while the
// server stops, a request that comes too late is no error.
func (a *API) failureLevel() slog.Level {
	select {
	case <-a.stopping:
		return slog.LevelInfo
	default:
		return slog.LevelError
	}
}
