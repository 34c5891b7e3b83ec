package deliver

import (
	"context"
	"time"
)

// pace waits until the channel's limits may allow one more message; false if ctx
// ends first. One connection at a time watches the clock and the others wait for
// its place. None of them holds a job meanwhile, so that an urgent one that
// comes is the next to leave.
func (o *Outlet) pace(ctx context.Context) bool {
	select {
	case o.pacing <- struct{}{}:
		defer func() { <-o.pacing }()
	case <-ctx.Done():
		return false
	}
	o.mu.Lock()
	pause := o.limits.pause(o.options.Clock.Now())
	o.mu.Unlock()
	if pause <= 0 {
		return true
	}
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-o.hurry:
		return true
	case <-ctx.Done():
		return false
	}
}

// hasten wakes who waits for the limits: they have changed.
func (o *Outlet) hasten() {
	select {
	case o.hurry <- struct{}{}:
	default: // woken already
	}
}
