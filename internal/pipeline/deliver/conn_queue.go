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

func newConnQueue(s *Sender, r *relay) *connQueue {
	return &connQueue{sender: s, relay: r, wake: make(chan struct{}, 1), busyLane: comingLane}
}

// Next hands out the next job, the most urgent lane first. Jobs that the gate
// refuses already are dealt with on the way.
func (q *connQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	s := q.sender
	if ctx.Err() != nil {
		return nil, nil
	}
	var idle *time.Timer
	for {
		job, says, finished := q.take(wait)
		finish(finished)
		if job != nil {
			return &job.Message, nil
		}
		if !wait || q.closing {
			return nil, nil
		}
		if says == waitForRate {
			if !s.pace(ctx, q) {
				return nil, nil
			}
			continue
		}
		if idle == nil {
			s.mu.Lock()
			idle = time.NewTimer(s.settings.IdleTimeout)
			s.mu.Unlock()
			defer idle.Stop()
		}
		if !q.await(ctx, idle, says == waitForReply) {
			return nil, nil
		}
	}
}

// await waits for a sign that there are jobs or, where those that wait are blocked,
// that one of them may leave. It counts the connection as idle meanwhile.
func (q *connQueue) await(ctx context.Context, idle *time.Timer, blocked bool) bool {
	s := q.sender
	s.mu.Lock()
	if blocked && !s.limits.blocked || !blocked && s.hasWork(q.relay, s.openLanes(q)) {
		s.mu.Unlock()
		return true
	}
	q.relay.idle = append(q.relay.idle, q)
	s.countIdle(q)
	s.mu.Unlock()
	select {
	case <-q.wake:
		q.woken = true
		return true
	case <-idle.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(q.relay.idle, q)
	if at < 0 { // woken in the same moment
		<-q.wake
		idle.Reset(0) // where there is nothing for it after all
		return true
	}
	q.relay.idle = slices.Delete(q.relay.idle, at, at+1)
	return false
}

// take pops the most urgent job that the gate and the limits let pass, of the lanes
// that have not all the connections they may. Where there is none, it says for what
// the others wait.
func (q *connQueue) take(wait bool) (taken *Job, says admission, finished []*Batch) {
	s := q.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.countBusy(q)
	if q.closing = q.closing || s.seatTaken(q.relay); q.closing {
		return nil, admitted, nil
	}
	now, ahead := s.options.Clock.Now(), !wait && len(q.jobs) > 0
	defer s.setTimer(now)
	open := s.openLanes(q)
	for job := s.pop(q.relay, open); job != nil; job = s.pop(q.relay, open) {
		job.grouped, job.prefetched = false, ahead
		says, finished = q.admit(job, nil, now, finished)
		switch says {
		case waitForRate, waitForReply:
			return nil, says, finished
		case admitted:
			q.wakeNext()
			return job, says, finished
		}
	}
	return nil, admitted, finished
}

// admit has the gate and the limits look at a job that was popped, by itself or to go
// with a leader. It is the connection's where it leaves, and in its place elsewhere.
// The caller holds mu.
func (q *connQueue) admit(job, leader *Job, now time.Time, finished []*Batch) (admission, []*Batch) {
	s := q.sender
	decision, why := s.decide(job, now)
	if decision != Go {
		return throttled, s.settleRefused(job, decision, why, finished)
	}
	var rests bool
	if rests, finished = s.awaitsBroadcastRate(job, now, finished); rests {
		return throttled, finished
	}
	n := 1
	if leader == nil {
		n = q.groupSize(job)
	}
	says, until := s.limits.admit(job, leader, n, job.prefetched, now)
	switch says {
	case waitForRate:
		q.pacing = pacing{lane: job.batch.Lane, groupSize: n, budgets: until}
		s.putBack(job)
	case waitForReply:
		s.putBack(job)
	case throttled:
		s.limits.enqueueThrottled(job, now)
	case postponeJob:
		finished = s.postponeForDestination(job, until, now, finished)
	case admitted:
		s.readmissionDone(job, now)
		q.jobs = append(q.jobs, job)
		job.relay, job.holder = q.relay, q
		job.fastBefore = fastCountsOf(job)
	}
	return says, finished
}

// wakeNext has the next idle connection look where this one was woken and found a
// job: what made room for one may have made it for more. The caller holds mu.
func (q *connQueue) wakeNext() {
	if q.woken && q.sender.queued() > 0 {
		q.sender.wakeOne()
	}
	q.woken = false
}

// holds reports whether the connection holds a job. The caller holds mu.
func (q *connQueue) holds(job *Job) bool { return job.holder == q }

// drop ends the connection's hold on a job; false if it had none. The caller
// holds mu.
func (q *connQueue) drop(job *Job) bool {
	if !q.holds(job) {
		return false
	}
	at := slices.Index(q.jobs, job)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	job.holder = nil
	return true
}

// decide asks the gate, and whether there is still time.
func (s *Sender) decide(job *Job, now time.Time) (Decision, string) {
	if decision, why := s.options.Gate.Check(job); decision != Go {
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
func (q *connQueue) Return(message *driver.Message) {
	s, job := q.sender, message.Owner.(*Job)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight.has(job) || !q.drop(job) {
		return
	}
	s.limits.unsent(job)
	s.capacityFreed(job)
	s.putBack(job)
	s.hurryUpFor(job.batch.Lane)
	s.countBusy(q)
	s.wakeOne()
}

// Release puts the message on the wire, and only then asks the gate: who ends a
// subscription closes the gate first and looks at the wire then, so that one of
// the two sees the other.
func (q *connQueue) Release(message *driver.Message) bool {
	s, job := q.sender, message.Owner.(*Job)
	s.mu.Lock()
	if again := s.inFlight.has(job); again || !q.holds(job) {
		s.mu.Unlock()
		return again
	}
	s.inFlight.put(job)
	s.limits.unreserve(job)
	timeout := s.settings.SendTimeout
	s.mu.Unlock()
	now := s.options.Clock.Now()
	decision, why := s.decide(job, now)
	short := time.Until(job.batch.LeaseEnd()) < timeout
	if decision == Go && !short {
		s.options.Recorder.Expect()
		failpoint.Hit("before-body")
		return true
	}
	s.mu.Lock()
	q.drop(job)
	s.countBusy(q)
	s.limits.unsent(job)
	s.capacityFreed(job)
	s.endInFlight(job)
	var finished []*Batch
	if decision == Go {
		finished = s.leaveUnsettled(job, Go, nil)
	} else {
		finished = s.settleRefused(job, decision, why, nil)
	}
	s.mu.Unlock()
	finish(finished)
	return false
}

// errNotHeld tells a driver that it reported a message which it does not have.
var errNotHeld = errors.New("this connection does not have the message")

// Report has the outcome recorded, and counts the job as done.
func (q *connQueue) Report(message *driver.Message, outcome driver.Outcome) error {
	s, job := q.sender, message.Owner.(*Job)
	failpoint.Hit("after-reply")
	s.mu.Lock()
	held, settings, record := q.drop(job), s.settings, s.options.Recorder.Record
	if s.inFlight.has(job) {
		record = s.options.Recorder.RecordExpected
	}
	s.mu.Unlock()
	if !held {
		return errNotHeld
	}
	advice, entry := s.entryOf(job, &outcome, settings)
	err := record(&entry, s.due(job, &entry))
	s.mu.Lock()
	now := s.options.Clock.Now()
	took := q.duration(job, now)
	s.countOutcome(q.relay, &outcome, took, now)
	finished := s.reported(job, &outcome, advice, took, now, err, nil)
	if s.connections < s.limits.connections() {
		s.openConnections()
	}
	s.mu.Unlock()
	finish(finished)
	return err
}

// entryOf reads an outcome, which gets its class, and says what follows from it.
func (s *Sender) entryOf(job *Job, outcome *driver.Outcome, settings *Settings) (Advice, fanfare.Entry) {
	advice := s.classify(outcome, job.Destination)
	state, next, text := settings.retryOf(outcome.Class).follow(outcome, job, s.options.Jitter())
	return advice, fanfare.Entry{
		Delivery: job.Message.Delivery, Attempt: job.Attempt, State: state,
		Code: outcome.Code, Text: text, Relay: outcome.Relay, Address: job.Message.To,
		At: outcome.At, NextAt: next, Channel: s.options.Channel, Class: outcome.Class,
	}
}

// reported learns from the outcome of a job, which was kept or not, and counts the
// job as done. The caller holds mu.
func (s *Sender) reported(job *Job, outcome *driver.Outcome, advice Advice, took time.Duration, now time.Time, err error, finished []*Batch) []*Batch {
	if s.limits.learn(job, outcome, advice, took, now) {
		s.wakeOne() // and this connection takes what was its own part
	}
	job.broadcastCounted = false // it has left
	s.capacityFreed(job)
	if outcome.Verdict == driver.Accepted {
		s.accepted++
	}
	s.endInFlight(job)
	if err != nil {
		return s.leaveUnsettled(job, Go, finished)
	}
	return s.settle(job, finished)
}

// duration is for how long a connection was busy with a job: from when it had it, or
// had done with the one before. The caller holds mu.
func (q *connQueue) duration(job *Job, now time.Time) time.Duration {
	since, before, sofar := job.takenAt, job.fastBefore.relay, fastCountsOf(job)
	if q.lastDone.After(since) {
		since, before = q.lastDone, q.fastAtLastDone
	}
	q.lastDone, q.fastAtLastDone = now, sofar.relay
	job.overtaken = sofar.relay - before - (sofar.destination - job.fastBefore.destination)
	return now.Sub(since)
}

// abandon brings the messages to an end that a connection left behind: one that
// panicked could not. What was released may have left, and counts as an attempt;
// so does what took part in too many panics.
func (q *connQueue) abandon(err error) {
	s := q.sender
	s.mu.Lock()
	left := slices.Clone(q.jobs)
	s.mu.Unlock()
	for _, job := range slices.Backward(left) { // the first goes back in front of the others
		job.abandoned++
		s.mu.Lock()
		released := s.inFlight.has(job)
		s.mu.Unlock()
		if !released && job.abandoned < maxAbandoned {
			q.Return(&job.Message)
			continue
		}
		outcome := driver.Outcome{Verdict: driver.Lost, Text: "the connection left it behind", At: s.options.Clock.Now()}
		if err != nil {
			outcome.Text += ": " + err.Error()
		}
		if err := q.Report(&job.Message, outcome); err != nil {
			s.options.Logger.Warn("what a connection left behind could not be recorded, it comes again", "channel", s.options.Name, "error", err)
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
func (s *Sender) rateWait(p *pacing) time.Duration {
	now := s.options.Clock.Now()
	if p.groupSize > 1 { // another connection may have sent a group meanwhile, and the next is smaller
		p.groupSize = max(1, min(p.groupSize, s.limits.groupSize(s.settings.Multicast)))
	}
	pause := max(s.limits.rateWait(p.groupSize, p.lane == fanfare.Urgent, now), p.budgets.Sub(now))
	p.until = now.Add(pause)
	return pause
}

// pace waits until the limits may allow what the connection was told to wait for;
// false if ctx ends first. One connection at a time watches the clock and the others
// wait for its place. None of them holds a job meanwhile, so that an urgent one that
// comes is the next to leave: it does not wait until a group may leave.
func (s *Sender) pace(ctx context.Context, q *connQueue) bool {
	s.mu.Lock()
	if s.rateWait(&q.pacing); s.pacer != nil && q.pacing.until.Before(s.pacer.until) {
		s.hurryUp()
	}
	s.mu.Unlock()
	select {
	case s.pacing <- struct{}{}:
		defer func() { <-s.pacing }()
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	pause := s.rateWait(&q.pacing)
	if pause <= 0 || q.pacing.lane > fanfare.Urgent && s.waiting.has(lanes{fanfare.Urgent, q.pacing.lane - 1}) {
		s.mu.Unlock()
		return true
	}
	s.pacer = &q.pacing
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.pacer = nil
		s.mu.Unlock()
	}()
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-s.hurry:
		return true
	case <-ctx.Done():
		return false
	}
}

// hurryUpFor has the connection that waits for the limits look again where something
// more urgent has come than what it waits for. The caller holds mu.
func (s *Sender) hurryUpFor(lane fanfare.Lane) {
	if s.pacer != nil && lane < s.pacer.lane {
		s.hurryUp()
	}
}

// hurryUp wakes who waits for the limits: they have changed.
func (s *Sender) hurryUp() {
	select {
	case s.hurry <- struct{}{}:
	default: // woken already
	}
}
