package deliver

import (
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// failoverJobs are jobs that a relay refused for reasons of its own, and that another
// one is to have. They wait apart, so that the relay which refused them goes on
// with others.
type failoverJobs []*Job

// maxFailover is how many jobs may wait there; of those beyond, a refusal is an
// attempt.
const maxFailover = fanfare.MaxBatch

// Elsewhere lets another relay have a message that this one refused for reasons of
// its own; see driver.Queue.
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

// putBack puts a job back in front, or with those that were passed on. The
// caller holds mu.
func (s *Sender) putBack(job *Job) {
	if len(job.refusedBy) > 0 {
		s.failover = append(s.failover, job)
	} else {
		s.waiting.pushFront(job)
	}
}

// pop takes the next job of some lanes that a relay may have, with none any job.
// What was passed on goes first, within its lane. The caller holds mu.
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

// accepts reports whether a relay may have a job: not one that it refused, while
// there is another relay for it.
func (s *Sender) accepts(r *relay, job *Job) bool {
	return !slices.Contains(job.refusedBy, r) || !s.relays.hasOther(job)
}

// hasWork reports whether there is something of some lanes for a relay to do. The
// caller holds mu.
func (s *Sender) hasWork(r *relay, of lanes) bool {
	return s.waiting.has(of) || slices.ContainsFunc(s.failover, func(job *Job) bool { return of.has(job.batch.Lane) && s.accepts(r, job) })
}

// queued is how many jobs wait. The caller holds mu.
func (s *Sender) queued() int { return s.waiting.len() + len(s.failover) }

// wakeForFailover has an idle connection of each relay look at what was passed on.
// The caller holds mu.
func (s *Sender) wakeForFailover() {
	for _, r := range s.relays {
		for n := min(len(r.idle), len(s.failover)); n > 0; n-- {
			s.wake(r)
		}
	}
}

// remove takes out of all that waits the jobs for which gone is true. The caller
// holds mu.
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
