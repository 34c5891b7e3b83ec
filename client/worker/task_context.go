package worker

import (
	"context"
	"sync"
	"time"
)

// A taskContext is the context of one task. It makes its channel and its timer only when somebody asks for them, because
// most functions that take microseconds never do.
type taskContext struct {
	parent   context.Context // of the connection
	deadline time.Time       // zero: none

	mu       sync.Mutex
	err      error
	done     chan struct{}
	stop     func() bool // of the parent
	timer    *time.Timer
	observed bool // somebody may wait for done
}

func (c *taskContext) Deadline() (time.Time, bool) {
	if parent, ok := c.parent.Deadline(); ok && (c.deadline.IsZero() || parent.Before(c.deadline)) {
		return parent, true
	}
	return c.deadline, !c.deadline.IsZero()
}

func (c *taskContext) Value(key any) any { return c.parent.Value(key) }

func (c *taskContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed {
		return c.done
	}
	c.observed = true
	c.done = make(chan struct{})
	if c.err != nil {
		close(c.done)
		return c.done
	}
	c.stop = context.AfterFunc(c.parent, func() { c.cancel(c.parent.Err()) })
	if !c.deadline.IsZero() {
		c.timer = time.AfterFunc(time.Until(c.deadline), func() { c.cancel(context.DeadlineExceeded) })
	}
	return c.done
}

func (c *taskContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil || c.observed:
		return c.err
	case c.parent.Err() != nil:
		return c.parent.Err()
	case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

func (c *taskContext) cancel(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.observed {
		close(c.done)
		c.stop()
		if c.timer != nil {
			c.timer.Stop()
		}
	}
}
