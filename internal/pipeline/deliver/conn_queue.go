package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// connQueue is the outlet as one of its connections sees it.
type connQueue struct {
	sender *Sender
	relay  *relay
	wake   chan struct{} // gets one token when an idle connection is to look for a job
	woken  bool          // by such a token, and has not found a job since; the connection's own

	// Guarded by the outlet.
	jobs           []*Job    // what the connection has taken and not brought to an end
	lastDone       time.Time // when the last one of them was
	fastAtLastDone int64     // how many messages the relay had been quick with at that time
	closing        bool      // the connection is to end: another relay has its seat
	busyLane       int       // the lane that it is counted as busy with, nothing, or coming

	pacing     pacing // what it was told to wait for
	groupLimit int    // recipients that the connection takes at once; 0: it has not said
}

func newConnQueue(o *Sender, r *relay) *connQueue {
	return &connQueue{sender: o, relay: r, wake: make(chan struct{}, 1), busyLane: comingLane}
}

// Next hands out the next job, the most urgent lane first. Jobs that the gate
// refuses already are dealt with on the way.
func (d *connQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	o := d.sender
	if ctx.Err() != nil {
		return nil, nil
	}
	var idle *time.Timer
	for {
		job, says, finished := d.take(wait)
		finish(finished)
		if job != nil {
			return &job.Message, nil
		}
		if !wait || d.closing {
			return nil, nil
		}
		if says == waitForRate {
			if !o.pace(ctx, d) {
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
		if !d.await(ctx, idle, says == waitForReply) {
			return nil, nil
		}
	}
}

// await waits for a sign that there are jobs or, where those that wait are blocked,
// that one of them may leave. It counts the connection as idle meanwhile.
func (d *connQueue) await(ctx context.Context, idle *time.Timer, blocked bool) bool {
	o := d.sender
	o.mu.Lock()
	if blocked && !o.limits.blocked || !blocked && o.hasWork(d.relay, o.openLanes(d)) {
		o.mu.Unlock()
		return true
	}
	d.relay.idle = append(d.relay.idle, d)
	o.countIdle(d)
	o.mu.Unlock()
	select {
	case <-d.wake:
		d.woken = true
		return true
	case <-idle.C:
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.Index(d.relay.idle, d)
	if at < 0 { // woken in the same moment
		<-d.wake
		idle.Reset(0) // where there is nothing for it after all
		return true
	}
	d.relay.idle = slices.Delete(d.relay.idle, at, at+1)
	return false
}

// take pops the most urgent job that the gate and the limits let pass, of the lanes
// that have not all the connections they may. Where there is none, it says for what
// the others wait.
func (d *connQueue) take(wait bool) (taken *Job, says admission, finished []*Batch) {
	o := d.sender
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.countBusy(d)
	if d.closing = d.closing || o.seatTaken(d.relay); d.closing {
		return nil, admitted, nil
	}
	now, ahead := o.options.Clock.Now(), !wait && len(d.jobs) > 0
	defer o.setTimer(now)
	open := o.openLanes(d)
	for job := o.pop(d.relay, open); job != nil; job = o.pop(d.relay, open) {
		job.grouped, job.prefetched = false, ahead
		says, finished = d.admit(job, nil, now, finished)
		switch says {
		case waitForRate, waitForReply:
			return nil, says, finished
		case admitted:
			d.wakeNext()
			return job, says, finished
		}
	}
	return nil, admitted, finished
}

// admit has the gate and the limits look at a job that was popped, by itself or to go
// with a leader. It is the connection's where it leaves, and in its place elsewhere.
// The caller holds mu.
func (d *connQueue) admit(job, leader *Job, now time.Time, finished []*Batch) (admission, []*Batch) {
	o := d.sender
	decision, why := o.decide(job, now)
	if decision != Go {
		return throttled, o.settleRefused(job, decision, why, finished)
	}
	var rests bool
	if rests, finished = o.awaitsBroadcastRate(job, now, finished); rests {
		return throttled, finished
	}
	n := 1
	if leader == nil {
		n = d.groupSize(job)
	}
	says, until := o.limits.admit(job, leader, n, job.prefetched, now)
	switch says {
	case waitForRate:
		d.pacing = pacing{lane: job.batch.Lane, groupSize: n, budgets: until}
		o.putBack(job)
	case waitForReply:
		o.putBack(job)
	case throttled:
		o.limits.enqueueThrottled(job, now)
	case postponeJob:
		finished = o.postponeForDestination(job, until, now, finished)
	case admitted:
		o.readmissionDone(job, now)
		d.jobs = append(d.jobs, job)
		job.relay, job.holder = d.relay, d
		job.fastBefore = fastCountsOf(job)
	}
	return says, finished
}

// wakeNext has the next idle connection look where this one was woken and found a
// job: what made room for one may have made it for more. The caller holds mu.
func (d *connQueue) wakeNext() {
	if d.woken && d.sender.queued() > 0 {
		d.sender.wakeOne()
	}
	d.woken = false
}

// holds reports whether the connection holds a job. The caller holds mu.
func (d *connQueue) holds(job *Job) bool { return job.holder == d }

// drop ends the connection's hold on a job; false if it had none. The caller
// holds mu.
func (d *connQueue) drop(job *Job) bool {
	if !d.holds(job) {
		return false
	}
	at := slices.Index(d.jobs, job)
	d.jobs = slices.Delete(d.jobs, at, at+1)
	job.holder = nil
	return true
}

// decide asks the gate, and whether there is still time.
func (o *Sender) decide(job *Job, now time.Time) (Decision, string) {
	if decision, why := o.options.Gate.Check(job); decision != Go {
		return decision, why
	}
	if !job.Expires.IsZero() && now.After(job.Expires) {
		return expired, "not sent before " + job.Expires.Format(time.RFC3339)
	}
	if job.Quiet.At(now) {
		return quietNow, ""
	}
	return Go, ""
}

// Return puts a message of which nothing was written back in front.
func (d *connQueue) Return(message *driver.Message) {
	o, job := d.sender, message.Owner.(*Job)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inFlight.has(job) || !d.drop(job) {
		return
	}
	o.limits.unsent(job)
	o.capacityFreed(job)
	o.putBack(job)
	o.hurryUpFor(job.batch.Lane)
	o.countBusy(d)
	o.wakeOne()
}

// Release puts the message on the wire, and only then asks the gate: who ends a
// subscription closes the gate first and looks at the wire then, so that one of
// the two sees the other.
func (d *connQueue) Release(message *driver.Message) bool {
	o, job := d.sender, message.Owner.(*Job)
	o.mu.Lock()
	if again := o.inFlight.has(job); again || !d.holds(job) {
		o.mu.Unlock()
		return again
	}
	o.inFlight.put(job)
	o.limits.unreserve(job)
	timeout := o.settings.SendTimeout
	o.mu.Unlock()
	now := o.options.Clock.Now()
	decision, why := o.decide(job, now)
	short := time.Until(job.batch.LeaseEnd()) < timeout
	if decision == Go && !short {
		o.options.Recorder.Expect()
		failpoint.Hit("before-body")
		return true
	}
	o.mu.Lock()
	d.drop(job)
	o.countBusy(d)
	o.limits.unsent(job)
	o.capacityFreed(job)
	o.endInFlight(job)
	var finished []*Batch
	if decision == Go {
		finished = o.leaveUnsettled(job, Go, nil)
	} else {
		finished = o.settleRefused(job, decision, why, nil)
	}
	o.mu.Unlock()
	finish(finished)
	return false
}

// errNotHeld tells a driver that it reported a message which it does not have.
var errNotHeld = errors.New("this connection does not have the message")

// Report has the outcome recorded, and counts the job as done.
func (d *connQueue) Report(message *driver.Message, outcome driver.Outcome) error {
	o, job := d.sender, message.Owner.(*Job)
	failpoint.Hit("after-reply")
	o.mu.Lock()
	held, settings, record := d.drop(job), o.settings, o.options.Recorder.Record
	if o.inFlight.has(job) {
		record = o.options.Recorder.RecordExpected
	}
	o.mu.Unlock()
	if !held {
		return errNotHeld
	}
	advice, entry := o.entryOf(job, &outcome, settings)
	err := record(&entry, o.due(job, &entry))
	o.mu.Lock()
	now := o.options.Clock.Now()
	took := d.duration(job, now)
	o.countOutcome(d.relay, &outcome, took, now)
	finished := o.reported(job, &outcome, advice, took, now, err, nil)
	if o.connections < o.limits.connections() {
		o.openConnections()
	}
	o.mu.Unlock()
	finish(finished)
	return err
}

// entryOf reads an outcome, which gets its class, and says what follows from it.
func (o *Sender) entryOf(job *Job, outcome *driver.Outcome, settings *Settings) (Advice, fanfare.Entry) {
	advice := o.classify(outcome, job.Destination)
	state, next, text := settings.retryOf(outcome.Class).follow(outcome, job, o.options.Jitter())
	return advice, fanfare.Entry{
		Delivery: job.Message.Delivery, Attempt: job.Attempt, State: state,
		Code: outcome.Code, Text: text, Relay: outcome.Relay, Address: job.Message.To,
		At: outcome.At, NextAt: next, Channel: o.options.Channel, Class: outcome.Class,
	}
}

// reported learns from the outcome of a job, which was kept or not, and counts the
// job as done. The caller holds mu.
func (o *Sender) reported(job *Job, outcome *driver.Outcome, advice Advice, took time.Duration, now time.Time, err error, finished []*Batch) []*Batch {
	if o.limits.learn(job, outcome, advice, took, now) {
		o.wakeOne() // and this connection takes what was its own part
	}
	job.broadcastCounted = false // it has left
	o.capacityFreed(job)
	if outcome.Verdict == driver.Accepted {
		o.accepted++
	}
	o.endInFlight(job)
	if err != nil {
		return o.leaveUnsettled(job, Go, finished)
	}
	return o.settle(job, finished)
}

// duration is for how long a connection was busy with a job: from when it had it, or
// had done with the one before. The caller holds mu.
func (d *connQueue) duration(job *Job, now time.Time) time.Duration {
	since, before, sofar := job.takenAt, job.fastBefore.relay, fastCountsOf(job)
	if d.lastDone.After(since) {
		since, before = d.lastDone, d.fastAtLastDone
	}
	d.lastDone, d.fastAtLastDone = now, sofar.relay
	job.overtaken = sofar.relay - before - (sofar.destination - job.fastBefore.destination)
	return now.Sub(since)
}

// abandon brings the messages to an end that a connection left behind: one that
// panicked could not. What was released may have left, and counts as an attempt;
// so does what took part in too many panics.
func (d *connQueue) abandon(err error) {
	o := d.sender
	o.mu.Lock()
	left := slices.Clone(d.jobs)
	o.mu.Unlock()
	for _, job := range slices.Backward(left) { // the first goes back in front of the others
		job.abandoned++
		o.mu.Lock()
		released := o.inFlight.has(job)
		o.mu.Unlock()
		if !released && job.abandoned < maxAbandoned {
			d.Return(&job.Message)
			continue
		}
		outcome := driver.Outcome{Verdict: driver.Lost, Text: "the connection left it behind", At: o.options.Clock.Now()}
		if err != nil {
			outcome.Text += ": " + err.Error()
		}
		if err := d.Report(&job.Message, outcome); err != nil {
			o.options.Logger.Warn("what a connection left behind could not be recorded, it comes again", "channel", o.options.Name, "error", err)
		}
	}
}

// A pace is what a connection waits for: that so many messages of a lane may leave
// together.
type pacing struct {
	lane      fanfare.Lane
	groupSize int
	budgets   time.Time // until when budgets do not have so many
	until     time.Time // when all limits may allow it
}

// rateWait is for how long a connection has to wait for its pace. The caller holds mu.
func (o *Sender) rateWait(p *pacing) time.Duration {
	now := o.options.Clock.Now()
	if p.groupSize > 1 { // another connection may have sent a group meanwhile, and the next is smaller
		p.groupSize = max(1, min(p.groupSize, o.limits.groupSize(o.settings.Multicast)))
	}
	pause := max(o.limits.rateWait(p.groupSize, p.lane == fanfare.Urgent, now), p.budgets.Sub(now))
	p.until = now.Add(pause)
	return pause
}

// pace waits until the limits may allow what the connection was told to wait for;
// false if ctx ends first. One connection at a time watches the clock and the others
// wait for its place. None of them holds a job meanwhile, so that an urgent one that
// comes is the next to leave: it does not wait until a group may leave.
func (o *Sender) pace(ctx context.Context, d *connQueue) bool {
	o.mu.Lock()
	if o.rateWait(&d.pacing); o.pacer != nil && d.pacing.until.Before(o.pacer.until) {
		o.hurryUp()
	}
	o.mu.Unlock()
	select {
	case o.pacing <- struct{}{}:
		defer func() { <-o.pacing }()
	case <-ctx.Done():
		return false
	}
	o.mu.Lock()
	pause := o.rateWait(&d.pacing)
	if pause <= 0 || d.pacing.lane > fanfare.Urgent && o.waiting.has(lanes{fanfare.Urgent, d.pacing.lane - 1}) {
		o.mu.Unlock()
		return true
	}
	o.pacer = &d.pacing
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.pacer = nil
		o.mu.Unlock()
	}()
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-o.hurry:
		return true
	case <-ctx.Done():
		return false
	}
}

// hurryUpFor has the connection that waits for the limits look again where something
// more urgent has come than what it waits for. The caller holds mu.
func (o *Sender) hurryUpFor(lane fanfare.Lane) {
	if o.pacer != nil && lane < o.pacer.lane {
		o.hurryUp()
	}
}

// hurryUp wakes who waits for the limits: they have changed.
func (o *Sender) hurryUp() {
	select {
	case o.hurry <- struct{}{}:
	default: // woken already
	}
}
