package deliver

import (
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// failoverJobs contains jobs that a relay refused for its own reasons and that another relay
// should get. They wait separately, so that the relay that refused them continues
// with others.
type failoverJobs []*Job

// maxFailover is the maximum number of such jobs. Beyond it, a refusal counts as an
// attempt.
const maxFailover = fanfare.MaxBatch

// Failover passes a message that this relay refused for its own reasons to another relay;
// see driver.Queue.
func (q *connQueue) Failover(message *driver.Message, outcome driver.Outcome) bool {
	s, job := q.sender, message.Owner.(*Job)
	s.classify(&outcome, job.Destination)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight.has(job) || !q.holds(job) || !aboutRelay(&outcome) || len(s.failover) >= maxFailover {
		return false
	}
	refused := job.refusedBy
	if job.refusedBy = append(refused[:len(refused):len(refused)], q.relay); !s.relays.hasOther(job) {
		job.refusedBy = refused
		return false
	}
	q.drop(job)
	s.countBusy(q)
	s.limits.unsent(job)
	s.capacityFreed(job)
	s.countOutcome(q.relay, &outcome, 0, s.options.Clock.Now())
	s.putBack(job)
	s.hurryUpFor(job.batch.Lane)
	s.wakeForFailover()
	s.openConnections()
	return true
}

// putBack puts a job back at the front of the queue, or into the failover list. The caller
// holds mu.
func (s *Sender) putBack(job *Job) {
	if len(job.refusedBy) > 0 {
		s.failover = append(s.failover, job)
	} else {
		s.waiting.pushFront(job)
	}
}

// pop takes the next job of the given lanes that a relay may get. Within a lane, failover
// jobs come first. The caller holds mu.
func (s *Sender) pop(r *relay, of lanes) *Job {
	job := s.waiting.pop(of)
	first := -1
	for i, p := range s.failover {
		if of.has(p.batch.Lane) && (job == nil || p.batch.Lane <= job.batch.Lane) && s.accepts(r, p) && (first < 0 || p.batch.Lane < s.failover[first].batch.Lane) {
			first = i
		}
	}
	if first < 0 {
		return job
	}
	if job != nil {
		s.waiting.pushFront(job)
	}
	job = s.failover[first]
	s.failover = slices.Delete(s.failover, first, first+1)
	return job
}

// accepts reports whether a relay may get a job: it may not if it refused the job and there
// is another relay for it.
func (s *Sender) accepts(r *relay, job *Job) bool {
	return !r.refused(job) || !s.relays.hasOther(job)
}

// hasWork reports whether a relay may get a waiting job of the given lanes. The caller
// holds mu.
func (s *Sender) hasWork(r *relay, of lanes) bool {
	return s.waiting.has(of) || slices.ContainsFunc(s.failover, func(job *Job) bool { return of.has(job.batch.Lane) && s.accepts(r, job) })
}

// queued returns the number of waiting jobs. The caller holds mu.
func (s *Sender) queued() int { return s.waiting.len() + len(s.failover) }

// wakeForFailover wakes idle connections of each relay, so that they look at the failover
// jobs. The caller holds mu.
func (s *Sender) wakeForFailover() {
	for _, r := range s.relays {
		for n := min(len(r.idle), len(s.failover)); n > 0; n-- {
			s.wake(r)
		}
	}
}

// remove removes and returns all waiting jobs for which gone returns true. The caller holds
// mu.
func (s *Sender) remove(gone func(*Job) bool) []*Job {
	removed := slices.Concat(s.waiting.remove(gone), s.limits.remove(gone), s.removeRateLimited(gone))
	s.failover = slices.DeleteFunc(s.failover, func(job *Job) bool {
		if gone(job) {
			removed = append(removed, job)
			return true
		}
		return false
	})
	return removed
}
