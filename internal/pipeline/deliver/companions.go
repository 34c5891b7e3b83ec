package deliver

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
)

// shares reports whether two jobs are one message, also of two batches: or each batch
// would end with a group that is not full.
func (job *Job) shares(with *Job) bool {
	return job.Letter.Share != 0 && job.Letter.Share == with.Letter.Share
}

// groupOf is how many messages leave together with a job that leaves next, itself
// included: those that wait and say the same, as far as the channel and the next hop take
// so many at once, and as its rates allow in a second. The caller holds mu.
func (d *desk) groupOf(job *Job) int {
	o, most := d.outlet, d.outlet.settings.Multicast
	if d.most > 0 {
		most = min(most, d.most)
	}
	if most <= 1 || job.Letter.Share == 0 {
		return 1
	}
	return 1 + o.waiting.countShared(job, o.limits.group(most)-1)
}

// Companions hands out further jobs that are the same message as one that the
// connection has: those that are next in its flow. Each passes the gate and the
// limits by itself. For the windows of the channel all of them are one message, for
// everything else they count by themselves.
func (d *desk) Companions(dst []*fanfare.Letter, letter *fanfare.Letter, most int) []*fanfare.Letter {
	o, leader := d.outlet, letter.Work.(*Job)
	o.mu.Lock()
	if !d.has(leader) || letter.Share == 0 {
		o.mu.Unlock()
		return dst
	}
	d.most = len(dst) + most
	if o.settings.Multicast > 1 && o.limits.even() {
		most = min(most, leader.reserved) // what the rates have allowed
	}
	now := o.options.Clock.Now()
	var finished []*Batch
	for says := leaves; most > 0 && (says == leaves || says == apart || says == away); {
		job := o.waiting.popShared(leader)
		if job == nil {
			break
		}
		job.along, job.ahead = true, leader.ahead
		if says, finished = d.offer(job, leader, now, finished); says == leaves {
			dst = append(dst, &job.Letter)
			most--
		}
	}
	o.limits.unreserve(leader)
	o.count(d)
	o.lookAfter(now)
	o.mu.Unlock()
	finish(finished)
	return dst
}

// ReleaseAll puts letters on the wire and asks the gate then, as Release does.
// Where it refuses some, none of them leaves: they are off the wire again, and what
// is left of them is in its place.
func (d *desk) ReleaseAll(letters []*fanfare.Letter) (left []*fanfare.Letter, released bool) {
	o := d.outlet
	o.mu.Lock()
	for _, letter := range letters {
		job := letter.Work.(*Job)
		if !o.wired.has(job) && d.has(job) {
			o.wired.put(job)
			o.limits.unreserve(job)
			left = append(left, letter)
		}
	}
	timeout := o.settings.SendTimeout
	o.mu.Unlock()
	if len(left) < len(letters) { // some are not the connection's, or were released: a driver's mistake
		o.mu.Lock()
		for _, letter := range left {
			o.unwire(letter.Work.(*Job))
		}
		o.mu.Unlock()
		return left, false
	}
	now := o.options.Clock.Now()
	var refused []refusal
	for _, letter := range letters {
		job := letter.Work.(*Job)
		decision, why := o.decide(job, now)
		if decision != Go || time.Until(job.batch.Leased()) < timeout {
			refused = append(refused, refusal{job, decision, why})
		}
	}
	if refused == nil {
		for range letters {
			o.options.Recorder.Expect()
		}
		failpoint.Hit("before-body")
		return left, true
	}
	var finished []*Batch
	o.mu.Lock()
	for _, letter := range letters {
		o.unwire(letter.Work.(*Job))
	}
	for _, r := range refused {
		d.drop(r.job)
		o.limits.unsent(r.job)
		o.freed(r.job)
		if r.decision == Go {
			finished = o.leave(r.job, Go, finished)
		} else {
			finished = o.dismiss(r.job, r.decision, r.why, finished)
		}
	}
	o.count(d)
	left = slices.DeleteFunc(left, func(letter *fanfare.Letter) bool { return !d.has(letter.Work.(*Job)) })
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

// ReportAll has the outcomes of letters that left together recorded together, and
// counts their jobs as done. What several of them were answered with is one answer
// of the relay.
func (d *desk) ReportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome) error {
	o := d.outlet
	failpoint.Hit("after-reply")
	o.mu.Lock()
	settings := o.settings
	for _, letter := range letters {
		if !d.has(letter.Work.(*Job)) {
			o.mu.Unlock()
			return errNotHeld
		}
	}
	for _, letter := range letters {
		letter.Work.(*Job).holder = nil
	}
	d.jobs = slices.DeleteFunc(d.jobs, func(job *Job) bool { return job.holder == nil })
	o.mu.Unlock()

	entries := make([]fanfare.Entry, len(letters))
	advices := make([]Advice, len(letters))
	heard := slices.Clone(outcomes)
	for i, letter := range letters {
		advices[i], entries[i] = o.entryOf(letter.Work.(*Job), &heard[i], settings)
	}
	unkept := make([]error, len(letters))
	for from := 0; from < len(letters); { // a commit is of one day
		to := sameDay(entries, from)
		unkept[from] = o.recordTogether(letters[from:to], entries[from:to])
		for i := from + 1; i < to; i++ {
			unkept[i] = unkept[from]
		}
		from = to
	}

	o.mu.Lock()
	now := o.options.Clock.Now()
	took := d.took(letters[0].Work.(*Job), now)
	if len(letters) > 1 { // nobody knows which of them the relay took long for
		letters[0].Work.(*Job).overtaken = 0
	}
	var finished []*Batch
	for i, letter := range letters {
		job := letter.Work.(*Job)
		job.echo = i > 0 && outcomes[i] == outcomes[i-1]
		if !job.echo {
			o.answered(d.relay, &heard[i], took, now)
		} else if heard[i].Verdict == fanfare.Taken {
			d.relay.taken++
		}
		finished = o.reported(job, &heard[i], advices[i], took, now, unkept[i], finished)
	}
	if o.connections < o.limits.connections() {
		o.spawn()
	}
	o.mu.Unlock()
	finish(finished)
	return cmp.Or(unkept...)
}

// recordTogether keeps entries of one day.
func (o *Outlet) recordTogether(letters []*fanfare.Letter, entries []fanfare.Entry) error {
	var dues []fanfare.Due
	expected := 0
	o.mu.Lock()
	for _, letter := range letters {
		if o.wired.has(letter.Work.(*Job)) {
			expected++
		}
	}
	o.mu.Unlock()
	for i, letter := range letters {
		if due := o.due(letter.Work.(*Job), &entries[i]); due != nil {
			dues = append(dues, *due)
		}
	}
	return o.options.Recorder.RecordTogether(entries, dues, expected)
}

// sameDay is the end of the entries that are of the same day as one of them, and
// behind it without another between.
func sameDay(entries []fanfare.Entry, from int) (to int) {
	for to = from + 1; to < len(entries) && entries[to].Delivery.Day == entries[from].Delivery.Day; {
		to++
	}
	return to
}
