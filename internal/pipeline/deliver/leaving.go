package deliver

import "fanfare.dev/fanfare"

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

// dismiss deals with a job that must not leave. The caller holds mu.
func (o *Sender) dismiss(job *Job, decision Decision, why string, finished []*Batch) []*Batch {
	state := fanfare.Suppressed
	switch decision {
	case Hold, Anew:
		return o.leave(job, decision, finished)
	case later:
		return o.postpone(job, job.Quiet.Until, job.Quiet.Why, "", finished)
	case Cancel:
		state = fanfare.Cancelled
	case expire:
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
			done = o.leave(job, Go, nil)
		}
		o.mu.Unlock()
		finish(done)
	})
	return finished
}

// leave counts a job that stays unsettled: held, or to be done again. The
// caller holds mu.
func (o *Sender) leave(job *Job, decision Decision, finished []*Batch) []*Batch {
	if decision == Hold {
		job.batch.held++
	} else {
		job.batch.again++
	}
	return o.settle(job, finished)
}

// settle counts a job as out of the outlet. The caller holds mu.
func (o *Sender) settle(job *Job, finished []*Batch) []*Batch {
	if job.turn {
		o.turned(job, o.options.Clock.Now())
	}
	o.unpaid(job)
	job.batch.Left(job)
	job.batch.left--
	if job.batch.left == 0 {
		finished = append(finished, job.batch)
	}
	return finished
}

func (o *Sender) unwire(job *Job) {
	o.wired.drop(job)
	if job.offWire != nil {
		close(job.offWire)
		job.offWire = nil
	}
}

func finish(batches []*Batch) {
	for _, b := range batches {
		b.Finish(b.held, b.again)
	}
}
