package deliver

import (
	"slices"
	"time"
)

// capacityFreed continues with jobs that waited for a reply to another job. The caller
// holds mu.
func (s *Sender) capacityFreed(job *Job) {
	now := s.options.Clock.Now()
	if s.limits.reopened {
		s.limits.reopened = false
		s.hurryUp()
	}
	s.requeue(s.limits.takeReady(job.dest, now, nil))
	s.requeue(s.limits.takeDue(now))
	s.unblock()
	s.setTimer(now)
}

// unblock wakes a connection if connections wait for a reply. The caller holds mu.
func (s *Sender) unblock() {
	if s.limits.blocked {
		s.limits.blocked = false
		s.wakeOne()
	}
}

// readmissionDone notes that a readmitted job was examined, and readmits the next one. The
// caller holds mu.
func (s *Sender) readmissionDone(job *Job, now time.Time) {
	s.limits.readmissionDone(job)
	s.requeue(s.limits.takeReady(job.dest, now, nil))
}

// requeue puts jobs back at the front of their lanes. The caller holds mu.
func (s *Sender) requeue(ready []*Job) {
	if len(ready) == 0 {
		return
	}
	for _, job := range slices.Backward(ready) {
		s.putBack(job)
		s.hurryUpFor(job.batch.Lane)
	}
	s.openConnections()
	for range min(s.relays.idle(), len(ready)) {
		s.wakeOne()
	}
}

// setTimer marks overdue jobs and sets the timer for jobs that no reply will readmit. The
// caller holds mu.
func (s *Sender) setTimer(now time.Time) {
	at := s.limits.markOverdue(now)
	if !s.settings.Direct {
		at = time.Time{} // no connection is opened in place of an overdue one
	}
	if wake := s.limits.throttled.wakeups.next(); at.IsZero() || !wake.IsZero() && wake.Before(at) {
		at = wake
	}
	if closed := s.limits.closedUntil; closed.After(now) && (at.IsZero() || closed.Before(at)) {
		at = closed
	}
	if at.IsZero() || !s.timerAt.IsZero() && !at.Before(s.timerAt) || s.ctx.Err() != nil {
		return
	}
	s.timerAt = at
	if s.timer == nil {
		s.timer = time.AfterFunc(at.Sub(now), s.onTimer)
	} else {
		s.timer.Reset(at.Sub(now))
	}
}

func (s *Sender) onTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	now := s.options.Clock.Now()
	s.timerAt = time.Time{}
	closed := !s.limits.closedUntil.IsZero()
	before := s.limits.destinations.slowActive
	s.requeue(s.limits.takeDue(now))
	s.setTimer(now)
	if s.limits.destinations.slowActive > before || closed {
		s.openConnections()
		s.unblock()
	}
}
