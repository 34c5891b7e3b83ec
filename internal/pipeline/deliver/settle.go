package deliver

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// due returns the retry that a deferred entry needs, or nil.
func (s *Sender) due(job *Job, entry *fanfare.Entry) *fanfare.Due {
	if entry.State != fanfare.Deferred {
		return nil
	}
	return &fanfare.Due{
		At: entry.NextAt, Channel: s.options.Channel, Lane: job.batch.Lane,
		Slice: fanfare.RecipientRange{Manifest: entry.Delivery.Manifest, Positions: []uint32{entry.Delivery.Position}, Attempt: job.Attempt + 1},
	}
}

// settleRefused settles a job that must not be sent. The caller holds mu.
func (s *Sender) settleRefused(job *Job, decision Decision, why string, finished []*Batch) []*Batch {
	state := fanfare.Suppressed
	switch decision {
	case Hold, Reload:
		return s.leaveUnsettled(job, decision, finished)
	case quietNow:
		return s.postpone(job, job.Quiet.Until, job.Quiet.Why, "", finished)
	case Cancel:
		state = fanfare.Cancelled
	case expired:
		state = fanfare.Expired
	}
	entry := fanfare.Entry{
		Delivery: job.Message.Delivery, Attempt: job.Attempt, State: state, Text: why,
		Address: job.Message.To, At: s.options.Clock.Now(), Channel: s.options.Channel,
	}
	s.running.Go(func() {
		err := s.options.Recorder.Record(&entry, nil)
		s.mu.Lock()
		var done []*Batch
		if err == nil {
			done = s.settle(job, nil)
		} else {
			done = s.leaveUnsettled(job, Go, nil)
		}
		s.mu.Unlock()
		finish(done)
	})
	return finished
}

// leaveUnsettled counts a job that stays unsettled: it is held, or will be loaded again.
// The caller holds mu.
func (s *Sender) leaveUnsettled(job *Job, decision Decision, finished []*Batch) []*Batch {
	if decision == Hold {
		job.batch.held++
	} else {
		job.batch.unsent++
	}
	return s.settle(job, finished)
}

// settle ends the work of the sender on a job. The caller holds mu.
func (s *Sender) settle(job *Job, finished []*Batch) []*Batch {
	if job.readmitted {
		s.readmissionDone(job, s.options.Clock.Now())
	}
	s.refundBroadcastRate(job)
	job.batch.JobDone(job)
	job.batch.unsettled--
	if job.batch.unsettled == 0 {
		finished = append(finished, job.batch)
	}
	return finished
}

func (s *Sender) endInFlight(job *Job) {
	s.inFlight.drop(job)
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

// QuietPeriod is the next time in which a job must not be attempted.
type QuietPeriod struct {
	From  time.Time // zero: none is near
	Until time.Time // when the job is examined again
	Why   fanfare.Wait
}

// At reports whether the period has begun. A job that waited past the end is postponed too,
// since the next period may have begun.
func (q QuietPeriod) At(now time.Time) bool { return !q.From.IsZero() && !now.Before(q.From) }

// postponedJob is a job that returns to the due table.
type postponedJob struct {
	job *Job
	due fanfare.Due
}

// postpone returns a job to the due table without an attempt until a time, rounded up to a
// second. Jobs that are postponed at the same time are recorded together. destination is
// empty unless the job waits for it. The caller holds mu.
func (s *Sender) postpone(job *Job, until time.Time, why fanfare.Wait, destination string, finished []*Batch) []*Batch {
	if s.ctx.Err() != nil {
		return s.leaveUnsettled(job, Go, finished)
	}
	at := until.Truncate(time.Second)
	if at.Before(until) {
		at = at.Add(time.Second)
	}
	ref := job.Message.Delivery
	s.postponed = append(s.postponed, postponedJob{job, fanfare.Due{
		At: at, Channel: s.options.Channel, Lane: job.batch.Lane,
		Slice: fanfare.RecipientRange{Manifest: ref.Manifest, Positions: []uint32{ref.Position}, Attempt: job.Attempt},
		Why:   why, Destination: destination,
	}})
	if len(s.postponed) == 1 {
		recorded := make(chan struct{})
		s.recording = append(s.recording, recorded)
		s.running.Go(func() { s.recordPostponed(recorded) })
	}
	return finished
}

// postponeForDestination postpones a job for which its destination has no capacity. The caller
// holds mu.
func (s *Sender) postponeForDestination(job *Job, until, now time.Time, finished []*Batch) []*Batch {
	to, why := s.limits.destinationOf(job, now), fanfare.WaitDestinationLimit
	if to.breaker.Tripped() {
		why = fanfare.WaitDestinationSuspended
	}
	s.readmissionDone(job, now)
	return s.postpone(job, until, why, to.name, finished)
}

// recordPostponed records the postponed jobs, settles them and closes recorded.
func (s *Sender) recordPostponed(recorded chan struct{}) {
	s.mu.Lock()
	all := s.postponed
	s.postponed = nil
	s.mu.Unlock()
	days := map[fanfare.Day][]fanfare.Due{}
	for i := range all {
		day := all[i].job.Message.Delivery.Day
		days[day] = append(days[day], all[i].due)
	}
	failed := map[fanfare.Day]bool{}
	for day, dues := range days {
		failed[day] = s.options.Recorder.Postpone(day, dues) != nil
	}
	s.mu.Lock()
	close(recorded)
	s.recording = slices.DeleteFunc(s.recording, func(one chan struct{}) bool { return one == recorded })
	var finished []*Batch
	for i := range all {
		if job := all[i].job; failed[job.Message.Delivery.Day] {
			finished = s.leaveUnsettled(job, Go, finished)
		} else {
			finished = s.settle(job, finished)
		}
	}
	s.mu.Unlock()
	finish(finished)
}
