package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/kit"
)

// desk is the outlet as one of its connections sees it.
type desk struct {
	outlet *Outlet
	jobs   []*Job // what the connection has taken and not brought to an end; guarded by the outlet
}

// Next hands out the next job, the most urgent lane first. Jobs that the gate
// refuses already are dealt with on the way.
func (d *desk) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	o := d.outlet
	if ctx.Err() != nil {
		return nil, nil
	}
	var idle *time.Timer
	for {
		job, tooSoon, finished := d.take()
		finish(finished)
		if job != nil {
			return &job.Letter, nil
		}
		if !wait {
			return nil, nil
		}
		if tooSoon {
			if !o.pace(ctx) {
				return nil, nil
			}
			continue
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

// take pops the most urgent job that the gate lets pass; tooSoon says that there
// is one and that the channel's rate forbids it yet.
func (d *desk) take() (job *Job, tooSoon bool, finished []*Batch) {
	o := d.outlet
	o.mu.Lock()
	defer o.mu.Unlock()
	for lane := range o.lanes {
		for job := o.lanes[lane].pop(); job != nil; job = o.lanes[lane].pop() {
			o.makeRoom(lane)
			decision, why := o.decide(job)
			if decision != Go {
				finished = o.dismiss(job, decision, why, finished)
				continue
			}
			if !o.limiter.Allow() {
				o.lanes[lane].unpop(job)
				return nil, true, finished
			}
			d.jobs = append(d.jobs, job)
			return job, false, finished
		}
	}
	return nil, false, finished
}

// has reports whether the connection holds a job. The caller holds mu.
func (d *desk) has(job *Job) bool { return slices.Contains(d.jobs, job) }

// drop ends the connection's hold on a job; false if it had none. The caller
// holds mu.
func (d *desk) drop(job *Job) bool {
	at := slices.Index(d.jobs, job)
	if at >= 0 {
		d.jobs = slices.Delete(d.jobs, at, at+1)
	}
	return at >= 0
}

func (o *Outlet) makeRoom(lane int) {
	if o.lanes[lane].len() == maxQueued-fanfare.MaxBatch-1 {
		close(o.room)
		o.room = make(chan struct{})
	}
}

// decide asks the gate, and whether there is still time.
func (o *Outlet) decide(job *Job) (Decision, string) {
	if decision, why := o.options.Gate.Check(job); decision != Go {
		return decision, why
	}
	if !job.Expires.IsZero() && o.options.Clock.Now().After(job.Expires) {
		return expire, "not sent before " + job.Expires.Format(time.RFC3339)
	}
	return Go, ""
}

// pace waits until the channel's rate may allow one more message; false if ctx
// ends first. One connection at a time watches the clock and the others wait for
// its place. None of them holds a job meanwhile, so that an urgent one that
// comes is the next to leave.
func (o *Outlet) pace(ctx context.Context) bool {
	select {
	case o.pacing <- struct{}{}:
		defer func() { <-o.pacing }()
	case <-ctx.Done():
		return false
	}
	missing := 1 - o.limiter.Tokens()
	if missing <= 0 {
		return true
	}
	wait := time.NewTimer(time.Duration(missing/float64(o.limiter.Limit())*float64(time.Second)) + time.Microsecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Return puts a letter of which nothing was written back in front.
func (d *desk) Return(letter *fanfare.Letter) {
	o, job := d.outlet, letter.Work.(*Job)
	o.mu.Lock()
	_, released := o.wired[job]
	if !released && d.drop(job) {
		o.lanes[job.batch.Lane].unpop(job)
	}
	o.mu.Unlock()
	o.signal()
}

// Release puts the letter on the wire, and only then asks the gate: who ends a
// subscription closes the gate first and looks at the wire then, so that one of
// the two sees the other.
func (d *desk) Release(letter *fanfare.Letter) bool {
	o, job := d.outlet, letter.Work.(*Job)
	o.mu.Lock()
	_, again := o.wired[job]
	if again || !d.has(job) {
		o.mu.Unlock()
		return again
	}
	o.wired[job] = struct{}{}
	timeout := o.settings.SendTimeout
	o.mu.Unlock()
	decision, why := o.decide(job)
	short := time.Until(job.batch.Leased()) < timeout
	if decision == Go && !short {
		o.options.Recorder.Expect()
		kit.Step("before-body")
		return true
	}
	o.mu.Lock()
	d.drop(job)
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

// errNotHeld tells a driver that it reported a letter which it does not have.
var errNotHeld = errors.New("this connection does not have the letter")

// Report has the outcome recorded, and counts the job as done.
func (d *desk) Report(letter *fanfare.Letter, outcome fanfare.Outcome) error {
	o, job := d.outlet, letter.Work.(*Job)
	kit.Step("after-reply")
	o.mu.Lock()
	held, retry, record := d.drop(job), o.settings.Retry, o.options.Recorder.Record
	if _, released := o.wired[job]; released {
		record = o.options.Recorder.RecordExpected
	}
	o.mu.Unlock()
	if !held {
		return errNotHeld
	}
	state, next, text := retry.follow(&outcome, job)
	entry := fanfare.Entry{
		Delivery: letter.Delivery, Attempt: job.Attempt, State: state,
		Code: outcome.Code, Text: text, Relay: outcome.Relay, Address: letter.To,
		At: outcome.At, NextAt: next,
	}
	err := record(&entry, o.due(job, &entry))
	o.mu.Lock()
	if outcome.Verdict != fanfare.Lost {
		o.failures = 0
	}
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

// abandon brings the letters to an end that a connection left behind: one that
// panicked could not. What was released may have left, and counts as an attempt;
// so does what took part in too many panics.
func (d *desk) abandon(err error) {
	o := d.outlet
	o.mu.Lock()
	left := slices.Clone(d.jobs)
	o.mu.Unlock()
	for _, job := range slices.Backward(left) { // the first goes back in front of the others
		job.left++
		o.mu.Lock()
		_, released := o.wired[job]
		o.mu.Unlock()
		if !released && job.left < maxLeft {
			d.Return(&job.Letter)
			continue
		}
		outcome := fanfare.Outcome{Verdict: fanfare.Lost, Text: "the connection left it behind", At: o.options.Clock.Now()}
		if err != nil {
			outcome.Text += ": " + err.Error()
		}
		if err := d.Report(&job.Letter, outcome); err != nil {
			o.options.Logger.Warn("what a connection left behind could not be recorded, it comes again", "channel", o.options.Name, "error", err)
		}
	}
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
	case expire:
		state = fanfare.Expired
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
