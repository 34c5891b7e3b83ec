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
func (d *connQueue) groupSize(job *Job) int {
	o, most := d.sender, d.sender.settings.Multicast
	if d.groupLimit > 0 {
		most = min(most, d.groupLimit)
	}
	if most <= 1 || job.Message.SharedContent == 0 {
		return 1
	}
	return 1 + o.waiting.countSameContent(job, o.limits.groupSize(most)-1)
}

// Companions hands out further jobs that are the same message as one that the
// connection has: those that are next in its flow. Each passes the gate and the
// limits by itself. For the windows of the channel all of them are one message, for
// everything else they count by themselves.
func (d *connQueue) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	o, leader := d.sender, message.Owner.(*Job)
	o.mu.Lock()
	if !d.holds(leader) || message.SharedContent == 0 {
		o.mu.Unlock()
		return dst
	}
	d.groupLimit = len(dst) + most
	if o.settings.Multicast > 1 && o.limits.countsAtSend() {
		most = min(most, leader.reserved) // what the rates have allowed
	}
	now := o.options.Clock.Now()
	var finished []*Batch
	for says := admitted; most > 0 && (says == admitted || says == throttled || says == postponeJob); {
		job := o.waiting.popSameContent(leader)
		if job == nil {
			break
		}
		job.grouped, job.prefetched = true, leader.prefetched
		if says, finished = d.admit(job, leader, now, finished); says == admitted {
			dst = append(dst, &job.Message)
			most--
		}
	}
	o.limits.unreserve(leader)
	o.countBusy(d)
	o.setTimer(now)
	o.mu.Unlock()
	finish(finished)
	return dst
}

// ReleaseAll puts messages on the wire and asks the gate then, as Release does.
// Where it refuses some, none of them leaves: they are off the wire again, and what
// is left of them is in its place.
func (d *connQueue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	o := d.sender
	o.mu.Lock()
	for _, message := range messages {
		job := message.Owner.(*Job)
		if !o.inFlight.has(job) && d.holds(job) {
			o.inFlight.put(job)
			o.limits.unreserve(job)
			left = append(left, message)
		}
	}
	timeout := o.settings.SendTimeout
	o.mu.Unlock()
	if len(left) < len(messages) { // some are not the connection's, or were released: a driver's mistake
		o.mu.Lock()
		for _, message := range left {
			o.endInFlight(message.Owner.(*Job))
		}
		o.mu.Unlock()
		return left, false
	}
	now := o.options.Clock.Now()
	var refused []refusal
	for _, message := range messages {
		job := message.Owner.(*Job)
		decision, why := o.decide(job, now)
		if decision != Go || time.Until(job.batch.LeaseEnd()) < timeout {
			refused = append(refused, refusal{job, decision, why})
		}
	}
	if refused == nil {
		for range messages {
			o.options.Recorder.Expect()
		}
		failpoint.Hit("before-body")
		return left, true
	}
	var finished []*Batch
	o.mu.Lock()
	for _, message := range messages {
		o.endInFlight(message.Owner.(*Job))
	}
	for _, r := range refused {
		d.drop(r.job)
		o.limits.unsent(r.job)
		o.capacityFreed(r.job)
		if r.decision == Go {
			finished = o.leaveUnsettled(r.job, Go, finished)
		} else {
			finished = o.settleRefused(r.job, r.decision, r.why, finished)
		}
	}
	o.countBusy(d)
	left = slices.DeleteFunc(left, func(message *driver.Message) bool { return !d.holds(message.Owner.(*Job)) })
	o.mu.Unlock()
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
func (d *connQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	o := d.sender
	failpoint.Hit("after-reply")
	o.mu.Lock()
	settings := o.settings
	for _, message := range messages {
		if !d.holds(message.Owner.(*Job)) {
			o.mu.Unlock()
			return errNotHeld
		}
	}
	for _, message := range messages {
		message.Owner.(*Job).holder = nil
	}
	d.jobs = slices.DeleteFunc(d.jobs, func(job *Job) bool { return job.holder == nil })
	o.mu.Unlock()

	entries := make([]fanfare.Entry, len(messages))
	advices := make([]Advice, len(messages))
	heard := slices.Clone(outcomes)
	for i, message := range messages {
		advices[i], entries[i] = o.entryOf(message.Owner.(*Job), &heard[i], settings)
	}
	unkept := make([]error, len(messages))
	for from := 0; from < len(messages); { // a commit is of one day
		to := sameDay(entries, from)
		unkept[from] = o.recordTogether(messages[from:to], entries[from:to])
		for i := from + 1; i < to; i++ {
			unkept[i] = unkept[from]
		}
		from = to
	}

	o.mu.Lock()
	now := o.options.Clock.Now()
	took := d.duration(messages[0].Owner.(*Job), now)
	if len(messages) > 1 { // nobody knows which of them the relay took long for
		messages[0].Owner.(*Job).overtaken = 0
	}
	var finished []*Batch
	for i, message := range messages {
		job := message.Owner.(*Job)
		job.sameReply = i > 0 && outcomes[i] == outcomes[i-1]
		if !job.sameReply {
			o.countOutcome(d.relay, &heard[i], took, now)
		} else if heard[i].Verdict == driver.Accepted {
			d.relay.accepted++
		}
		finished = o.reported(job, &heard[i], advices[i], took, now, unkept[i], finished)
	}
	if o.connections < o.limits.connections() {
		o.openConnections()
	}
	o.mu.Unlock()
	finish(finished)
	return cmp.Or(unkept...)
}

// recordTogether keeps entries of one day.
func (o *Sender) recordTogether(messages []*driver.Message, entries []fanfare.Entry) error {
	var dues []fanfare.Due
	expected := 0
	o.mu.Lock()
	for _, message := range messages {
		if o.inFlight.has(message.Owner.(*Job)) {
			expected++
		}
	}
	o.mu.Unlock()
	for i, message := range messages {
		if due := o.due(message.Owner.(*Job), &entries[i]); due != nil {
			dues = append(dues, *due)
		}
	}
	return o.options.Recorder.RecordGroup(entries, dues, expected)
}

// sameDay is the end of the entries that are of the same day as one of them, and
// behind it without another between.
func sameDay(entries []fanfare.Entry, from int) (to int) {
	for to = from + 1; to < len(entries) && entries[to].Delivery.Day == entries[from].Delivery.Day; {
		to++
	}
	return to
}
