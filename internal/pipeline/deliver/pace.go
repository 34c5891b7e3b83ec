package deliver

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// A pace is what a connection waits for: that so many messages of a lane may leave
// together.
type pace struct {
	lane    fanfare.Lane
	n       int
	budgets time.Time // until when budgets do not have so many
	until   time.Time // when all limits may allow it
}

// pause is for how long a connection has to wait for its pace. The caller holds mu.
func (o *Sender) pause(p *pace) time.Duration {
	now := o.options.Clock.Now()
	if p.n > 1 { // another connection may have sent a group meanwhile, and the next is smaller
		p.n = max(1, min(p.n, o.limits.group(o.settings.Multicast)))
	}
	pause := max(o.limits.pause(p.n, p.lane == fanfare.Urgent, now), p.budgets.Sub(now))
	p.until = now.Add(pause)
	return pause
}

// pace waits until the limits may allow what the connection was told to wait for;
// false if ctx ends first. One connection at a time watches the clock and the others
// wait for its place. None of them holds a job meanwhile, so that an urgent one that
// comes is the next to leave: it does not wait until a group may leave.
func (o *Sender) pace(ctx context.Context, d *connQueue) bool {
	o.mu.Lock()
	if o.pause(&d.paced); o.pacer != nil && d.paced.until.Before(o.pacer.until) {
		o.hasten()
	}
	o.mu.Unlock()
	select {
	case o.pacing <- struct{}{}:
		defer func() { <-o.pacing }()
	case <-ctx.Done():
		return false
	}
	o.mu.Lock()
	pause := o.pause(&d.paced)
	if pause <= 0 || d.paced.lane > fanfare.Urgent && o.waiting.has(lanes{fanfare.Urgent, d.paced.lane - 1}) {
		o.mu.Unlock()
		return true
	}
	o.pacer = &d.paced
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.pacer = nil
		o.mu.Unlock()
	}()
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

// hastenFor has the connection that waits for the limits look again where something
// more urgent has come than what it waits for. The caller holds mu.
func (o *Sender) hastenFor(lane fanfare.Lane) {
	if o.pacer != nil && lane < o.pacer.lane {
		o.hasten()
	}
}

// hasten wakes who waits for the limits: they have changed.
func (o *Sender) hasten() {
	select {
	case o.hurry <- struct{}{}:
	default: // woken already
	}
}
