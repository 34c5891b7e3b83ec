package deliver

import (
	"slices"
	"time"
)

// capacityFreed has those leave that waited for a job to be answered. The caller holds mu.
func (o *Sender) capacityFreed(job *Job) {
	now := o.options.Clock.Now()
	if o.limits.reopened {
		o.limits.reopened = false
		o.hurryUp()
	}
	o.requeue(o.limits.takeReady(job.dest, now, nil))
	o.requeue(o.limits.takeDue(now))
	o.unblock()
	o.setTimer(now)
}

// unblock has a connection look whether what it waits for may leave now. The caller
// holds mu.
func (o *Sender) unblock() {
	if o.limits.blocked {
		o.limits.blocked = false
		o.wakeOne()
	}
}

// readmissionDone counts a job that was back from aside as looked at, and has the next one
// come. The caller holds mu.
func (o *Sender) readmissionDone(job *Job, now time.Time) {
	o.limits.readmissionDone(job)
	o.requeue(o.limits.takeReady(job.dest, now, nil))
}

// requeue puts jobs back in front of their lanes. The caller holds mu.
func (o *Sender) requeue(ready []*Job) {
	if len(ready) == 0 {
		return
	}
	for _, job := range slices.Backward(ready) {
		o.putBack(job)
		o.hurryUpFor(job.batch.Lane)
	}
	o.openConnections()
	for range min(o.relays.idle(), len(ready)) {
		o.wakeOne()
	}
}

// setTimer marks what takes too long, and sets the alarm for when something may
// go on that no answer brings back. The caller holds mu.
func (o *Sender) setTimer(now time.Time) {
	at := o.limits.markOverdue(now)
	if !o.settings.Direct {
		at = time.Time{} // no connection is opened in its place
	}
	if wake := o.limits.throttled.wakeups.next(); at.IsZero() || !wake.IsZero() && wake.Before(at) {
		at = wake
	}
	if closed := o.limits.closedUntil; closed.After(now) && (at.IsZero() || closed.Before(at)) {
		at = closed
	}
	if at.IsZero() || !o.timerAt.IsZero() && !at.Before(o.timerAt) || o.ctx.Err() != nil {
		return
	}
	o.timerAt = at
	if o.timer == nil {
		o.timer = time.AfterFunc(at.Sub(now), o.onTimer)
	} else {
		o.timer.Reset(at.Sub(now))
	}
}

func (o *Sender) onTimer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return
	}
	now := o.options.Clock.Now()
	o.timerAt = time.Time{}
	closed := !o.limits.closedUntil.IsZero()
	before := o.limits.destinations.slowActive
	o.requeue(o.limits.takeDue(now))
	o.setTimer(now)
	if o.limits.destinations.slowActive > before || closed {
		o.openConnections()
		o.unblock()
	}
}
