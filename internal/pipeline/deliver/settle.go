package deliver

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// due is the work that a deferred entry leaves for later.
func (o *Sender) due(job *Job, entry *fanfare.Entry) *fanfare.Due {
	if entry.State != fanfare.Deferred {
		return nil
	}
	return &fanfare.Due{
		At: entry.NextAt, Channel: o.options.Channel, Lane: job.batch.Lane,
		Slice: fanfare.RecipientRange{Manifest: entry.Delivery.Manifest, Positions: []uint32{entry.Delivery.Position}, Attempt: job.Attempt + 1},
	}
}

// settleRefused deals with a job that must not leave. The caller holds mu.
func (o *Sender) settleRefused(job *Job, decision Decision, why string, finished []*Batch) []*Batch {
	state := fanfare.Suppressed
	switch decision {
	case Hold, Reload:
		return o.leaveUnsettled(job, decision, finished)
	case quietNow:
		return o.postpone(job, job.Quiet.Until, job.Quiet.Why, "", finished)
	case Cancel:
		state = fanfare.Cancelled
	case expired:
		state = fanfare.Expired
	}
	entry := fanfare.Entry{
		Delivery: job.Message.Delivery, Attempt: job.Attempt, State: state, Text: why,
		Address: job.Message.To, At: o.options.Clock.Now(), Channel: o.options.Channel,
	}
	o.running.Go(func() {
		err := o.options.Recorder.Record(&entry, nil)
		o.mu.Lock()
		var done []*Batch
		if err == nil {
			done = o.settle(job, nil)
		} else {
			done = o.leaveUnsettled(job, Go, nil)
		}
		o.mu.Unlock()
		finish(done)
	})
	return finished
}

// leaveUnsettled counts a job that stays unsettled: held, or to be done again. The
// caller holds mu.
func (o *Sender) leaveUnsettled(job *Job, decision Decision, finished []*Batch) []*Batch {
	if decision == Hold {
		job.batch.held++
	} else {
		job.batch.unsent++
	}
	return o.settle(job, finished)
}

// settle counts a job as out of the outlet. The caller holds mu.
func (o *Sender) settle(job *Job, finished []*Batch) []*Batch {
	if job.readmitted {
		o.readmissionDone(job, o.options.Clock.Now())
	}
	o.refundBroadcastRate(job)
	job.batch.JobDone(job)
	job.batch.unsettled--
	if job.batch.unsettled == 0 {
		finished = append(finished, job.batch)
	}
	return finished
}

func (o *Sender) endInFlight(job *Job) {
	o.inFlight.drop(job)
	if job.landed != nil {
		close(job.landed)
		job.landed = nil
	}
}

func finish(batches []*Batch) {
	for _, b := range batches {
		b.Finish(b.held, b.unsent)
	}
}

// QuietPeriod is the next time during which a job must not be tried.
type QuietPeriod struct {
	From  time.Time // zero: none is near
	Until time.Time // when the job is to be looked at again
	Why   fanfare.Wait
}

// At reports whether it has begun. A job that waited past its end is looked at
// again too: the next one may have begun.
func (q QuietPeriod) At(now time.Time) bool { return !q.From.IsZero() && !now.Before(q.From) }

// postponedJob is a job that goes back to the due table.
type postponedJob struct {
	job *Job
	due fanfare.Due
}

// postpone puts a job off until a time, rounded up to a second, without an
// attempt: it comes back as it is. What is put off together is kept together.
// For a destination it is told which. The caller holds mu.
func (o *Sender) postpone(job *Job, until time.Time, why fanfare.Wait, destination string, finished []*Batch) []*Batch {
	if o.ctx.Err() != nil {
		return o.leaveUnsettled(job, Go, finished)
	}
	at := until.Truncate(time.Second)
	if at.Before(until) {
		at = at.Add(time.Second)
	}
	ref := job.Message.Delivery
	o.postponed = append(o.postponed, postponedJob{job, fanfare.Due{
		At: at, Channel: o.options.Channel, Lane: job.batch.Lane,
		Slice: fanfare.RecipientRange{Manifest: ref.Manifest, Positions: []uint32{ref.Position}, Attempt: job.Attempt},
		Why:   why, Destination: destination,
	}})
	if len(o.postponed) == 1 {
		kept := make(chan struct{})
		o.recording = append(o.recording, kept)
		o.running.Go(func() { o.recordPostponed(kept) })
	}
	return finished
}

// postponeForDestination puts a job off that its destination has no room for. The caller holds mu.
func (o *Sender) postponeForDestination(job *Job, until, now time.Time, finished []*Batch) []*Batch {
	to, why := o.limits.destinationOf(job, now), fanfare.WaitDestinationLimit
	if to.breaker.Tripped() {
		why = fanfare.WaitDestinationSuspended
	}
	o.readmissionDone(job, now)
	return o.postpone(job, until, why, to.name, finished)
}

// recordPostponed has what is put off recorded, and counts its jobs as done. It
// closes kept then.
func (o *Sender) recordPostponed(kept chan struct{}) {
	o.mu.Lock()
	all := o.postponed
	o.postponed = nil
	o.mu.Unlock()
	days := map[fanfare.Day][]fanfare.Due{}
	for i := range all {
		day := all[i].job.Message.Delivery.Day
		days[day] = append(days[day], all[i].due)
	}
	failed := map[fanfare.Day]bool{}
	for day, dues := range days {
		failed[day] = o.options.Recorder.Postpone(day, dues) != nil
	}
	o.mu.Lock()
	close(kept)
	o.recording = slices.DeleteFunc(o.recording, func(one chan struct{}) bool { return one == kept })
	var finished []*Batch
	for i := range all {
		if job := all[i].job; failed[job.Message.Delivery.Day] {
			finished = o.leaveUnsettled(job, Go, finished)
		} else {
			finished = o.settle(job, finished)
		}
	}
	o.mu.Unlock()
	finish(finished)
}
