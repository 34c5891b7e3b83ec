package deliver

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// sharesContent reports whether two jobs have the same content, for two recipients: an email server may deliver
// a message once that has a recipient twice. The jobs may belong to two batches: otherwise each batch would end
// with a partial group.
func (job *Job) sharesContent(with *Job) bool {
	return job.Message.SharedContent != 0 && job.Message.SharedContent == with.Message.SharedContent && job.Message.To != with.Message.To
}

// groupSize returns how many messages are sent together with a job, including the job:
// those that wait and have the same content, as far as the channel, the next hop and the
// rates allow. The caller holds mu.
func (q *connQueue) groupSize(job *Job) int {
	s, most := q.sender, q.sender.settings.Multicast
	if q.groupLimit > 0 {
		most = min(most, q.groupLimit)
	}
	if most <= 1 || job.Message.SharedContent == 0 {
		return 1
	}
	return 1 + s.waiting.countSameContent(job, s.limits.groupSize(most)-1)
}

// TakeSameContent takes the next jobs of the flow that have the same content as a message
// of the connection. The gate and the limits admit each of them. In the window of the
// channel all of them count as one message, and in every other limit each counts as one.
func (q *connQueue) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	s, leader := q.sender, message.Owner.(*Job)
	s.mu.Lock()
	if !q.holds(leader) || message.SharedContent == 0 {
		s.mu.Unlock()
		return dst
	}
	q.groupLimit = len(dst) + most
	if s.settings.Multicast > 1 && s.limits.countsAtSend() {
		most = min(most, leader.reserved) // what the rates have allowed
	}
	now := s.options.Clock.Now()
	var finished []*Batch
	last := message.To
	if len(dst) > 0 {
		last = dst[len(dst)-1].To
	}
	for result := admitted; most > 0 && (result == admitted || result == throttled || result == postponeJob); {
		job := s.waiting.popSameContent(leader, last)
		if job == nil {
			break
		}
		job.grouped, job.prefetched = true, leader.prefetched
		if result, finished = q.admit(job, leader, now, finished); result == admitted {
			dst = append(dst, &job.Message)
			last = job.Message.To
			most--
		}
	}
	s.limits.unreserve(leader)
	s.countBusy(q)
	s.setTimer(now)
	s.mu.Unlock()
	finish(finished)
	return dst
}

// ReleaseAll marks the messages as in flight and then asks the gate, as Release does. If
// the gate refuses some, none of the messages is sent: left holds the others, which are no
// longer in flight.
func (q *connQueue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	s := q.sender
	leads := s.awaitNodeLease()
	s.mu.Lock()
	for _, message := range messages {
		job := message.Owner.(*Job)
		if !s.inFlight.has(job) && q.holds(job) {
			s.inFlight.put(job)
			s.limits.unreserve(job)
			left = append(left, message)
		}
	}
	timeout := s.settings.SendTimeout
	s.mu.Unlock()
	if len(left) < len(messages) { // a driver error: the connection does not hold some, or they were released before
		s.mu.Lock()
		for _, message := range left {
			s.endInFlight(message.Owner.(*Job))
		}
		s.mu.Unlock()
		return left, false
	}
	now := s.options.Clock.Now()
	var refused []refusal
	for _, message := range messages {
		job := message.Owner.(*Job)
		decision, why := s.decide(job, now)
		if decision != Go || !leads || time.Until(job.batch.LeaseEnd()) < timeout {
			refused = append(refused, refusal{job, decision, why})
		}
	}
	if refused == nil {
		for range messages {
			s.options.Recorder.Expect()
		}
		failpoint.Hit("before-body")
		return left, true
	}
	var finished []*Batch
	s.mu.Lock()
	for _, message := range messages {
		s.endInFlight(message.Owner.(*Job))
	}
	for _, r := range refused {
		q.drop(r.job)
		s.limits.unsent(r.job)
		s.capacityFreed(r.job)
		if r.decision == Go {
			finished = s.leaveUnsettled(r.job, Go, finished)
		} else {
			finished = s.settleRefused(r.job, r.decision, r.why, finished)
		}
	}
	s.countBusy(q)
	left = slices.DeleteFunc(left, func(message *driver.Message) bool { return !q.holds(message.Owner.(*Job)) })
	s.mu.Unlock()
	finish(finished)
	return left, false
}

// A refusal is the gate's decision about a job that must not be sent.
type refusal struct {
	job      *Job
	decision Decision
	why      string
}

// ReportAll records the outcomes of messages that were sent together and settles their
// jobs. Equal outcomes count as one reply of the relay.
func (q *connQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	s := q.sender
	failpoint.Hit("after-reply")
	s.mu.Lock()
	settings := s.settings
	for _, message := range messages {
		if !q.holds(message.Owner.(*Job)) {
			s.mu.Unlock()
			return errNotHeld
		}
	}
	for _, message := range messages {
		message.Owner.(*Job).holder = nil
	}
	q.jobs = slices.DeleteFunc(q.jobs, func(job *Job) bool { return job.holder == nil })
	s.mu.Unlock()

	entries := make([]fanfare.Entry, len(messages))
	advices := make([]Advice, len(messages))
	classified := slices.Clone(outcomes)
	for i, message := range messages {
		advices[i], entries[i] = s.entryOf(message.Owner.(*Job), &classified[i], settings)
	}
	errs := make([]error, len(messages))
	for from := 0; from < len(messages); { // a commit has entries of one day
		to := sameDay(entries, from)
		errs[from] = s.recordTogether(messages[from:to], entries[from:to])
		for i := from + 1; i < to; i++ {
			errs[i] = errs[from]
		}
		from = to
	}

	s.mu.Lock()
	now := s.options.Clock.Now()
	took := q.duration(messages[0].Owner.(*Job), now)
	if len(messages) > 1 { // it is unknown which of them took long
		messages[0].Owner.(*Job).overtaken = 0
	}
	var finished []*Batch
	for i, message := range messages {
		job := message.Owner.(*Job)
		job.sameReply = i > 0 && outcomes[i] == outcomes[i-1]
		if !job.sameReply {
			s.countOutcome(q.relay, &classified[i], took, now)
		} else if classified[i].Verdict == driver.Accepted {
			q.relay.accepted++
		}
		finished = s.reported(job, &classified[i], advices[i], took, now, errs[i], finished)
	}
	if s.connections < s.limits.connections() {
		s.openConnections()
	}
	s.mu.Unlock()
	finish(finished)
	return cmp.Or(errs...)
}

// recordTogether records entries of one day.
func (s *Sender) recordTogether(messages []*driver.Message, entries []fanfare.Entry) error {
	var dues []fanfare.Due
	expected := 0
	s.mu.Lock()
	for _, message := range messages {
		if s.inFlight.has(message.Owner.(*Job)) {
			expected++
		}
	}
	s.mu.Unlock()
	for i, message := range messages {
		if due := s.due(message.Owner.(*Job), &entries[i]); due != nil {
			dues = append(dues, *due)
		}
	}
	return s.options.Recorder.RecordGroup(entries, dues, expected)
}

// sameDay returns the end of the run of entries that begins at from and has one day.
func sameDay(entries []fanfare.Entry, from int) (to int) {
	for to = from + 1; to < len(entries) && entries[to].Delivery.Day == entries[from].Delivery.Day; {
		to++
	}
	return to
}
