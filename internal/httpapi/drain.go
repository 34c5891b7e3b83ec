package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
)

// A requestCount counts the running requests that may change something, so that the server
// can wait for them before it closes the components that they use.
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

// Drain calls Stop and then waits, until ctx ends, for the running requests that may change
// something, so that an interrupted import is still recorded in the audit log. It does not
// wait for later requests.
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

// failureLevel returns the log level for failed requests. While the server stops,
// failures of late requests are not errors.
func (a *API) failureLevel() slog.Level {
	select {
	case <-a.stopping:
		return slog.LevelInfo
	default:
		return slog.LevelError
	}
}
