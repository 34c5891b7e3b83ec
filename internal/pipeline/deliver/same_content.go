package deliver

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// sharesContent reports whether two jobs are one message, also of two batches: or each batch
// would end with a group that is not full.
func (job *Job) sharesContent(with *Job) bool {
	return job.Message.SharedContent != 0 && job.Message.SharedContent == with.Message.SharedContent
}

// groupSize is how many messages leave together with a job that leaves next, itself
// included: those that wait and say the same, as far as the channel and the next hop take
// so many at once, and as its rates allow in a second. The caller holds mu.
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

// Companions hands out further jobs that are the same message as one that the
// connection has: those that are next in its flow. Each passes the gate and the
// limits by itself. For the windows of the channel all of them are one message, for
// everything else they count by themselves.
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
	for says := admitted; most > 0 && (says == admitted || says == throttled || says == postponeJob); {
		job := s.waiting.popSameContent(leader)
		if job == nil {
			break
		}
		job.grouped, job.prefetched = true, leader.prefetched
		if says, finished = q.admit(job, leader, now, finished); says == admitted {
			dst = append(dst, &job.Message)
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

// ReleaseAll puts messages on the wire and asks the gate then, as Release does.
// Where it refuses some, none of them leaves: they are off the wire again, and what
// is left of them is in its place.
func (q *connQueue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	s := q.sender
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
	if len(left) < len(messages) { // some are not the connection's, or were released: a driver's mistake
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
		if decision != Go || time.Until(job.batch.LeaseEnd()) < timeout {
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

// A refusal is what the gate said of a job that must not leave.
type refusal struct {
	job      *Job
	decision Decision
	why      string
}

// ReportAll has the outcomes of messages that left together recorded together, and
// counts their jobs as done. What several of them were answered with is one answer
// of the relay.
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
	heard := slices.Clone(outcomes)
	for i, message := range messages {
		advices[i], entries[i] = s.entryOf(message.Owner.(*Job), &heard[i], settings)
	}
	unkept := make([]error, len(messages))
	for from := 0; from < len(messages); { // a commit is of one day
		to := sameDay(entries, from)
		unkept[from] = s.recordTogether(messages[from:to], entries[from:to])
		for i := from + 1; i < to; i++ {
			unkept[i] = unkept[from]
		}
		from = to
	}

	s.mu.Lock()
	now := s.options.Clock.Now()
	took := q.duration(messages[0].Owner.(*Job), now)
	if len(messages) > 1 { // nobody knows which of them the relay took long for
		messages[0].Owner.(*Job).overtaken = 0
	}
	var finished []*Batch
	for i, message := range messages {
		job := message.Owner.(*Job)
		job.sameReply = i > 0 && outcomes[i] == outcomes[i-1]
		if !job.sameReply {
			s.countOutcome(q.relay, &heard[i], took, now)
		} else if heard[i].Verdict == driver.Accepted {
			q.relay.accepted++
		}
		finished = s.reported(job, &heard[i], advices[i], took, now, unkept[i], finished)
	}
	if s.connections < s.limits.connections() {
		s.openConnections()
	}
	s.mu.Unlock()
	finish(finished)
	return cmp.Or(unkept...)
}

// recordTogether keeps entries of one day.
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

// sameDay is the end of the entries that are of the same day as one of them, and
// behind it without another between.
func sameDay(entries []fanfare.Entry, from int) (to int) {
	for to = from + 1; to < len(entries) && entries[to].Delivery.Day == entries[from].Delivery.Day; {
		to++
	}
	return to
}
