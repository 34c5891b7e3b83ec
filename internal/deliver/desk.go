package deliver

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/kit"
)

// desk is the outlet as its connections see it.
type desk Outlet

// Next hands out the next job, the most urgent lane first. Jobs that the gate
// refuses already are dealt with on the way.
func (d *desk) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	o := (*Outlet)(d)
	if ctx.Err() != nil {
		return nil, nil
	}
	var idle *time.Timer
	for {
		job, finished := o.take()
		finish(finished)
		if job != nil {
			ok, err := o.admitted(ctx, job, wait)
			if err != nil || ok {
				return letterOf(job, ok), err
			}
			return nil, nil
		}
		if !wait {
			return nil, nil
		}
		if idle == nil {
			o.mu.Lock()
			idle = time.NewTimer(o.settings.IdleTimeout)
			o.mu.Unlock()
			defer idle.Stop()
		}
		if !o.await(ctx, idle) {
			return nil, nil
		}
	}
}

func letterOf(job *Job, ok bool) *fanfare.Letter {
	if !ok {
		return nil
	}
	return &job.Letter
}

// await waits for a sign that there are jobs. It counts the connection as idle
// meanwhile.
func (o *Outlet) await(ctx context.Context, idle *time.Timer) bool {
	o.mu.Lock()
	for lane := range o.lanes {
		if o.lanes[lane].len() > 0 {
			o.mu.Unlock()
			return true
		}
	}
	o.idle++
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.idle--
		o.mu.Unlock()
	}()
	select {
	case <-o.wake:
		return true
	case <-idle.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// take pops the most urgent job that the gate lets pass.
func (o *Outlet) take() (*Job, []*Batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var finished []*Batch
	for lane := range o.lanes {
		for job := o.lanes[lane].pop(); job != nil; job = o.lanes[lane].pop() {
			o.makeRoom(lane)
			decision, why := o.decide(job)
			if decision == Go {
				return job, finished
			}
			finished = o.dismiss(job, decision, why, finished)
		}
	}
	return nil, finished
}

func (o *Outlet) makeRoom(lane int) {
	if o.lanes[lane].len() == maxQueued-fanfare.MaxBatch-1 {
		close(o.room)
		o.room = make(chan struct{})
	}
}

// decide asks the gate, and whether the lease is long enough for one message.
func (o *Outlet) decide(job *Job) (Decision, string) {
	if decision, why := o.options.Gate.Check(job); decision != Go {
		return decision, why
	}
	return Go, ""
}

// admitted waits for the channel's rate. Without wait, a job that would have to
// wait goes back.
func (o *Outlet) admitted(ctx context.Context, job *Job, wait bool) (bool, error) {
	if o.limiter.Limit() == rate.Inf || o.limiter.Allow() {
		return true, nil
	}
	if wait {
		if err := o.limiter.Wait(ctx); err == nil {
			return true, nil
		}
	}
	o.putBack(job)
	return false, nil
}

// Return puts a letter of which nothing was written back in front.
func (d *desk) Return(letter *fanfare.Letter) {
	o := (*Outlet)(d)
	o.putBack(letter.Work.(*Job))
	o.signal()
}

func (o *Outlet) putBack(job *Job) {
	o.mu.Lock()
	o.lanes[job.batch.Lane].unpop(job)
	o.mu.Unlock()
}

// Release puts the letter on the wire, and only then asks the gate: who ends a
// subscription closes the gate first and looks at the wire then, so that one of
// the two sees the other.
func (d *desk) Release(letter *fanfare.Letter) bool {
	o := (*Outlet)(d)
	job := letter.Work.(*Job)
	o.mu.Lock()
	o.wired[job] = struct{}{}
	timeout := o.settings.SendTimeout
	o.mu.Unlock()
	decision, why := o.decide(job)
	short := time.Until(job.batch.Leased()) < timeout
	if decision == Go && !short {
		kit.Step("before-body")
		return true
	}
	o.mu.Lock()
	o.unwire(job)
	var finished []*Batch
	if decision == Go {
		finished = o.leave(job, Go, nil)
	} else {
		finished = o.dismiss(job, decision, why, nil)
	}
	o.mu.Unlock()
	finish(finished)
	return false
}

// Report has the outcome recorded, and counts the job as done.
func (d *desk) Report(letter *fanfare.Letter, outcome fanfare.Outcome) error {
	o := (*Outlet)(d)
	job := letter.Work.(*Job)
	kit.Step("after-reply")
	o.mu.Lock()
	retry := o.settings.Retry
	o.mu.Unlock()
	state, next, text := retry.follow(&outcome, job)
	entry := fanfare.Entry{
		Delivery: letter.Delivery, Attempt: job.Attempt, State: state,
		Code: outcome.Code, Text: text, Relay: outcome.Relay, Address: letter.To,
		At: outcome.At, NextAt: next,
	}
	err := o.options.Recorder.Record(&entry, o.due(job, &entry))
	o.mu.Lock()
	o.failures = 0
	if state == fanfare.Accepted {
		o.taken++
	}
	o.unwire(job)
	var finished []*Batch
	if err == nil {
		finished = o.settle(job, nil)
	} else {
		finished = o.leave(job, Go, nil)
	}
	if o.connections < o.settings.Connections {
		o.spawn()
	}
	o.mu.Unlock()
	finish(finished)
	return err
}

// due is the work that a deferred entry leaves for later.
func (o *Outlet) due(job *Job, entry *fanfare.Entry) *fanfare.Due {
	if entry.State != fanfare.Deferred {
		return nil
	}
	return &fanfare.Due{
		At: entry.NextAt, Channel: o.options.Channel, Lane: job.batch.Lane,
		Slice: fanfare.Slice{Manifest: entry.Delivery.Manifest, Positions: []uint32{entry.Delivery.Position}, Attempt: job.Attempt + 1},
	}
}

// dismiss deals with a job that must not leave. The caller holds mu.
func (o *Outlet) dismiss(job *Job, decision Decision, why string, finished []*Batch) []*Batch {
	state := fanfare.Suppressed
	switch decision {
	case Hold:
		return o.leave(job, Hold, finished)
	case Cancel:
		state = fanfare.Cancelled
	}
	entry := fanfare.Entry{
		Delivery: job.Letter.Delivery, Attempt: job.Attempt, State: state, Text: why,
		Address: job.Letter.To, At: o.options.Clock.Now(),
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
func (o *Outlet) leave(job *Job, decision Decision, finished []*Batch) []*Batch {
	if decision == Hold {
		job.batch.held++
	} else {
		job.batch.again++
	}
	return o.settle(job, finished)
}

// settle counts a job as out of the outlet. The caller holds mu.
func (o *Outlet) settle(job *Job, finished []*Batch) []*Batch {
	job.batch.Left(job)
	job.batch.left--
	if job.batch.left == 0 {
		finished = append(finished, job.batch)
	}
	return finished
}

func (o *Outlet) unwire(job *Job) {
	delete(o.wired, job)
	if job.wire != nil {
		close(job.wire)
		job.wire = nil
	}
}

func finish(batches []*Batch) {
	for _, b := range batches {
		b.Finish(b.held, b.again)
	}
}
