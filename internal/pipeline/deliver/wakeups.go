package deliver

import (
	"slices"
	"time"
)

// freed has those leave that waited for a job to be answered. The caller holds mu.
func (o *Sender) freed(job *Job) {
	now := o.options.Clock.Now()
	if o.limits.reopened {
		o.limits.reopened = false
		o.hasten()
	}
	o.bring(o.limits.back(job.to, now, nil))
	o.bring(o.limits.due(now))
	o.unblock()
	o.lookAfter(now)
}

// unblock has a connection look whether what it waits for may leave now. The caller
// holds mu.
func (o *Sender) unblock() {
	if o.limits.blocked {
		o.limits.blocked = false
		o.wakeOne()
	}
}

// turned counts a job that was back from aside as looked at, and has the next one
// come. The caller holds mu.
func (o *Sender) turned(job *Job, now time.Time) {
	o.limits.turned(job)
	o.bring(o.limits.back(job.to, now, nil))
}

// bring puts jobs back in front of their lanes. The caller holds mu.
func (o *Sender) bring(ready []*Job) {
	if len(ready) == 0 {
		return
	}
	for _, job := range slices.Backward(ready) {
		o.putBack(job)
		o.hastenFor(job.batch.Lane)
	}
	o.spawn()
	for range min(o.relays.idle(), len(ready)) {
		o.wakeOne()
	}
}

// lookAfter marks what takes too long, and sets the alarm for when something may
// go on that no answer brings back. The caller holds mu.
func (o *Sender) lookAfter(now time.Time) {
	at := o.limits.watch(now)
	if !o.settings.Direct {
		at = time.Time{} // no connection is opened in its place
	}
	if wake := o.limits.aside.alarm.next(); at.IsZero() || !wake.IsZero() && wake.Before(at) {
		at = wake
	}
	if closed := o.limits.closedUntil; closed.After(now) && (at.IsZero() || closed.Before(at)) {
		at = closed
	}
	if at.IsZero() || !o.alarmAt.IsZero() && !at.Before(o.alarmAt) || o.ctx.Err() != nil {
		return
	}
	o.alarmAt = at
	if o.alarm == nil {
		o.alarm = time.AfterFunc(at.Sub(now), o.ring)
	} else {
		o.alarm.Reset(at.Sub(now))
	}
}

func (o *Sender) ring() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return
	}
	now := o.options.Clock.Now()
	o.alarmAt = time.Time{}
	closed := !o.limits.closedUntil.IsZero()
	before := o.limits.destinations.slow
	o.bring(o.limits.due(now))
	o.lookAfter(now)
	if o.limits.destinations.slow > before || closed {
		o.spawn()
		o.unblock()
	}
}
