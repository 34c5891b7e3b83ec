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
func (d *connQueue) Failover(message *driver.Message, outcome driver.Outcome) bool {
	o, job := d.sender, message.Owner.(*Job)
	o.classify(&outcome, job.Destination)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inFlight.has(job) || !d.holds(job) || !aboutRelay(&outcome) || len(o.failover) >= maxFailover {
		return false
	}
	refused := job.refusedBy
	if job.refusedBy = append(refused[:len(refused):len(refused)], d.relay); !o.relays.hasOther(job) {
		job.refusedBy = refused
		return false
	}
	d.drop(job)
	o.countBusy(d)
	o.limits.unsent(job)
	o.capacityFreed(job)
	o.countOutcome(d.relay, &outcome, 0, o.options.Clock.Now())
	o.putBack(job)
	o.hurryUpFor(job.batch.Lane)
	o.wakeForFailover()
	o.openConnections()
	return true
}

// putBack puts a job back in front, or with those that were passed on. The
// caller holds mu.
func (o *Sender) putBack(job *Job) {
	if len(job.refusedBy) > 0 {
		o.failover = append(o.failover, job)
	} else {
		o.waiting.pushFront(job)
	}
}

// pop takes the next job of some lanes that a relay may have, with none any job.
// What was passed on goes first, within its lane. The caller holds mu.
func (o *Sender) pop(r *relay, of lanes) *Job {
	job := o.waiting.pop(of)
	first := -1
	for i, p := range o.failover {
		if of.has(p.batch.Lane) && (job == nil || p.batch.Lane <= job.batch.Lane) && o.accepts(r, p) && (first < 0 || p.batch.Lane < o.failover[first].batch.Lane) {
			first = i
		}
	}
	if first < 0 {
		return job
	}
	if job != nil {
		o.waiting.pushFront(job)
	}
	job = o.failover[first]
	o.failover = slices.Delete(o.failover, first, first+1)
	return job
}

// accepts reports whether a relay may have a job: not one that it refused, while
// there is another relay for it.
func (o *Sender) accepts(r *relay, job *Job) bool {
	return !slices.Contains(job.refusedBy, r) || !o.relays.hasOther(job)
}

// hasWork reports whether there is something of some lanes for a relay to do. The
// caller holds mu.
func (o *Sender) hasWork(r *relay, of lanes) bool {
	return o.waiting.has(of) || slices.ContainsFunc(o.failover, func(job *Job) bool { return of.has(job.batch.Lane) && o.accepts(r, job) })
}

// queued is how many jobs wait. The caller holds mu.
func (o *Sender) queued() int { return o.waiting.len() + len(o.failover) }

// wakeForFailover has an idle connection of each relay look at what was passed on.
// The caller holds mu.
func (o *Sender) wakeForFailover() {
	for _, r := range o.relays {
		for n := min(len(r.idle), len(o.failover)); n > 0; n-- {
			o.wake(r)
		}
	}
}

// remove takes out of all that waits the jobs for which gone is true. The caller
// holds mu.
func (o *Sender) remove(gone func(*Job) bool) []*Job {
	removed := slices.Concat(o.waiting.remove(gone), o.limits.remove(gone), o.removeRateLimited(gone))
	o.failover = slices.DeleteFunc(o.failover, func(job *Job) bool {
		if gone(job) {
			removed = append(removed, job)
			return true
		}
		return false
	})
	return removed
}
