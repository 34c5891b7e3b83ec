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

// connQueue implements driver.Queue for one connection of a sender.
type connQueue struct {
	sender *Sender
	relay  *relay
	wake   chan struct{} // receives one token when an idle connection should look for a job
	woken  bool          // the token woke it, and it has not found a job since then; only the connection uses this field

	// The sender's lock guards these fields.
	jobs           []*Job    // that the connection holds
	lastDone       time.Time // when the last job was settled
	fastAtLastDone int64     // relay.fast at that time
	closing        bool      // the connection is about to end and another relay gets its seat
	busyLane       int       // the lane that it counts for, idleLane or comingLane

	pacing     pacing // what it waits for
	groupLimit int    // recipients that the driver accepts in one transaction; 0: unknown
}

func newConnQueue(s *Sender, r *relay) *connQueue {
	return &connQueue{sender: s, relay: r, wake: make(chan struct{}, 1), busyLane: comingLane}
}

// Next returns the next job, in order of urgency. It settles jobs that the gate refuses.
func (q *connQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	s := q.sender
	if ctx.Err() != nil {
		return nil, nil
	}
	var idle *time.Timer
	for {
		job, result, finished := q.take(wait)
		finish(finished)
		if job != nil {
			return &job.Message, nil
		}
		if !wait || q.closing {
			return nil, nil
		}
		if result == waitForRate {
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
		if !q.await(ctx, idle, result == waitForReply) {
			return nil, nil
		}
	}
}

// await waits until there are jobs or, if all waiting jobs are blocked, until one of them
// may be sent. The connection counts as idle in the meantime.
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
	if at < 0 { // woken at the same moment
		<-q.wake
		idle.Reset(0) // in case there is no job for it
		return true
	}
	q.relay.idle = slices.Delete(q.relay.idle, at, at+1)
	return false
}

// take returns the most urgent job that the gate and the limits admit, of the lanes that
// may use another connection. If there is none, result tells what the others wait for.
func (q *connQueue) take(wait bool) (taken *Job, result admission, finished []*Batch) {
	s := q.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.countBusy(q)
	if q.closing = q.closing || s.seatTaken(q.relay); q.closing {
		return nil, admitted, nil
	}
	now, prefetch := s.options.Clock.Now(), !wait && len(q.jobs) > 0
	defer s.setTimer(now)
	open := s.openLanes(q)
	for job := s.pop(q.relay, open); job != nil; job = s.pop(q.relay, open) {
		job.grouped, job.prefetched = false, prefetch
		result, finished = q.admit(job, nil, now, finished)
		switch result {
		case waitForRate, waitForReply:
			return nil, result, finished
		case admitted:
			q.wakeNext()
			return job, result, finished
		}
	}
	return nil, admitted, finished
}

// admit asks the gate and the limits about a job that was taken from the queue, by itself or to
// be sent with leader. The connection holds the job if it is admitted; otherwise the job goes
// where it must wait. The caller holds mu.
func (q *connQueue) admit(job, leader *Job, now time.Time, finished []*Batch) (admission, []*Batch) {
	s := q.sender
	decision, why := s.decide(job, now)
	if decision != Go {
		return throttled, s.settleRefused(job, decision, why, finished)
	}
	var rests bool
	if rests, finished = s.awaitsBroadcastRate(job, now, finished); rests {
		s.readmissionDone(job, now) // so that a job that may be sent gets its place at the destination
		return throttled, finished
	}
	n := 1
	if leader == nil {
		n = q.groupSize(job)
	}
	result, until := s.limits.admit(job, leader, n, job.prefetched, now)
	switch result {
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
	return result, finished
}

// wakeNext wakes the next idle connection after this one was woken and found a job: there
// may be capacity for more jobs. The caller holds mu.
func (q *connQueue) wakeNext() {
	if q.woken && q.sender.queued() > 0 {
		q.sender.wakeOne()
	}
	q.woken = false
}

// holds reports whether the connection holds a job. The caller holds mu.
func (q *connQueue) holds(job *Job) bool { return job.holder == q }

// drop takes a job from the connection and returns false if the connection does not hold
// it. The caller holds mu.
func (q *connQueue) drop(job *Job) bool {
	if !q.holds(job) {
		return false
	}
	at := slices.Index(q.jobs, job)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	job.holder = nil
	return true
}

// decide asks the gate, then checks expiry and quiet hours.
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

// Return puts a message of whose body nothing was written back to the front of the queue.
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

// Release first marks the message as in flight and then asks the gate. An unsubscribe does the
// opposite: it first closes the gate and then waits for messages in flight. Therefore, at least
// one of the two sees the other.
func (q *connQueue) Release(message *driver.Message) bool {
	s, job := q.sender, message.Owner.(*Job)
	leads := s.awaitNodeLease()
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
	short := !leads || time.Until(job.batch.LeaseEnd()) < timeout
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

// NodeLease is the lease under which a node of a cluster sends.
type NodeLease interface {
	// Await waits until the lease is valid for at least d, and reports false if it is lost or ctx ends.
	Await(ctx context.Context, d time.Duration) bool
}

// nodeLeaseMargin is the validity that the lease of the node must have left when a body begins, so that no body begins
// after another node leads.
const nodeLeaseMargin = 2 * time.Second

// awaitNodeLease waits while the lease of the node has expired, and reports false if it is lost.
func (s *Sender) awaitNodeLease() bool {
	return s.options.NodeLease == nil || s.options.NodeLease.Await(s.ctx, nodeLeaseMargin)
}

// errNotHeld means that a driver reported a message that its connection does not hold.
var errNotHeld = errors.New("the message does not belong to the connection")

// Report records the outcome and settles the job.
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

// entryOf classifies an outcome and returns the entry that records it.
func (s *Sender) entryOf(job *Job, outcome *driver.Outcome, settings *Settings) (Advice, fanfare.Entry) {
	advice := s.classify(outcome, job.Destination)
	state, next, text := settings.retryOf(outcome.Class).follow(outcome, job, s.options.Jitter())
	return advice, fanfare.Entry{
		Delivery: job.Message.Delivery, Attempt: job.Attempt, State: state,
		Code: outcome.Code, Text: text, Relay: outcome.Relay, Address: job.Message.To,
		At: outcome.At, NextAt: next, Channel: s.options.Channel, Class: outcome.Class,
	}
}

// reported updates the limits with the outcome of a job and settles it; err is the result
// of recording it. The caller holds mu.
func (s *Sender) reported(job *Job, outcome *driver.Outcome, advice Advice, took time.Duration, now time.Time, err error, finished []*Batch) []*Batch {
	if s.limits.learn(job, outcome, advice, took, now) {
		s.wakeOne() // this connection takes the other place itself
	}
	job.broadcastCounted = false // it was sent: no refund
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

// duration returns how long the connection was busy with a job: since it received the job, or
// since it settled the previous one. The caller holds mu.
func (q *connQueue) duration(job *Job, now time.Time) time.Duration {
	since, before, sofar := job.takenAt, job.fastBefore.relay, fastCountsOf(job)
	if q.lastDone.After(since) {
		since, before = q.lastDone, q.fastAtLastDone
	}
	q.lastDone, q.fastAtLastDone = now, sofar.relay
	job.overtaken = sofar.relay - before - (sofar.destination - job.fastBefore.destination)
	return now.Sub(since)
}

// abandon settles the messages that a connection left behind because its driver panicked. A
// released message may have been sent, so that counts as an attempt. So does a message that
// was involved in too many panics.
func (q *connQueue) abandon(err error) {
	s := q.sender
	s.mu.Lock()
	left := slices.Clone(q.jobs)
	s.mu.Unlock()
	for _, job := range slices.Backward(left) { // so that the first one ends up at the front
		job.abandoned++
		s.mu.Lock()
		released := s.inFlight.has(job)
		s.mu.Unlock()
		if !released && job.abandoned < maxAbandoned {
			q.Return(&job.Message)
			continue
		}
		outcome := driver.Outcome{Verdict: driver.Lost, Text: "the connection abandoned the message", At: s.options.Clock.Now()}
		if err != nil {
			outcome.Text += ": " + err.Error()
		}
		if err := q.Report(&job.Message, outcome); err != nil {
			s.options.Logger.Warn("cannot record an abandoned message; it will be sent again", "channel", s.options.Name, "error", err)
		}
	}
}

// pacing describes what a connection waits for: permission to send groupSize messages of a
// lane together.
type pacing struct {
	lane      fanfare.Lane
	groupSize int
	budgets   time.Time // until when the budgets are exhausted
	until     time.Time // when all limits may allow it
}

// rateWait returns how long a connection must wait. The caller holds mu.
func (s *Sender) rateWait(p *pacing) time.Duration {
	now := s.options.Clock.Now()
	if p.groupSize > 1 { // another connection may have sent a group in the meantime, and the next group is smaller
		p.groupSize = max(1, min(p.groupSize, s.limits.groupSize(s.settings.Multicast)))
	}
	pause := max(s.limits.rateWait(p.groupSize, p.lane == fanfare.Urgent, now), p.budgets.Sub(now))
	p.until = now.Add(pause)
	return pause
}

// pace waits until the limits may allow what the connection waits for. It returns false if
// ctx ends first. One connection at a time watches the clock, and the others wait for their
// turn. None of them holds a job in the meantime, so a new urgent job is sent next and does not
// wait for a group.
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

// hurryUpFor wakes the connection that waits for the limits if a more urgent job has
// arrived. The caller holds mu.
func (s *Sender) hurryUpFor(lane fanfare.Lane) {
	if s.pacer != nil && lane < s.pacer.lane {
		s.hurryUp()
	}
}

// hurryUp wakes the connection that waits for the limits.
func (s *Sender) hurryUp() {
	select {
	case s.hurry <- struct{}{}:
	default: // already woken
	}
}
