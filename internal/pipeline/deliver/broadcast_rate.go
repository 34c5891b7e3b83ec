package deliver

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// Flows keep the rates of single broadcasts, over all outlets together. They are
// asked under the outlet's lock.
type Flows interface {
	// Group returns the size of the next group of a broadcast, where most messages may
	// leave together, and whether it has a rate.
	Group(event fanfare.EventRef, most int) (n int, limited bool)
	// Take counts n messages of a broadcast that leave together now, or tells how long
	// they have to wait.
	Take(event fanfare.EventRef, n int, now time.Time) (wait time.Duration)
	// Back gives back a message that was counted and does not leave.
	Back(event fanfare.EventRef)
}

// resting are jobs of broadcasts that have left as fast as they may, by broadcast.
// Others pass them. It is guarded by the outlet.
type resting struct {
	of    map[fanfare.EventRef]*rest
	small int         // jobs of batches that are no broadcast's own
	alarm *time.Timer // for the first that may go on
}

type rest struct {
	jobs   []*Job
	until  time.Time
	span   time.Duration // between two of them, as far as is known
	booked time.Time     // until when its time is given to what was put off
}

const (
	// maxSmallResting is how many jobs may rest of batches that are no broadcast's
	// own: those of small ones, and retries. The others are put off, so that what is
	// small and has no rate finds room.
	maxSmallResting = fanfare.MaxBatch
	// restAgain is for how long they are put off at least.
	restAgain = time.Minute
)

func (r *resting) len() int {
	n := 0
	for _, one := range r.of {
		n += len(one.jobs)
	}
	return n
}

// flow is how many jobs of a flow rest.
func (r *resting) flow(f Flow) int {
	if one := r.of[f]; one != nil {
		return len(one.jobs)
	}
	return 0
}

// count counts a job in or out.
func (r *resting) count(job *Job, n int) {
	if job.batch.Flow == (Flow{}) {
		r.small += n
	}
}

func (job *Job) event() fanfare.EventRef {
	return fanfare.EventRef{Day: job.Message.Delivery.Day, Seq: job.Message.Delivery.Manifest.Event()}
}

// rests reports whether a job has to wait for the rate of its broadcast, and
// keeps it meanwhile, or puts it off. The caller holds mu.
func (o *Sender) rests(job *Job, now time.Time, finished []*Batch) (bool, []*Batch) {
	if o.options.Flows == nil || job.paid {
		return false, finished
	}
	event := job.event()
	one := o.resting.of[event]
	if one == nil {
		var wait time.Duration // none for a group, which is made of what rests
		if !o.restsInGroup(job, event) {
			if wait = o.options.Flows.Take(event, 1, now); wait <= 0 {
				job.paid = true
				return false, finished
			}
		}
		if o.resting.of == nil {
			o.resting.of = map[fanfare.EventRef]*rest{}
		}
		one = &rest{until: now.Add(wait), span: wait}
		o.resting.of[event] = one
		o.wakeResting(now)
	}
	if len(one.jobs) > 0 && job.batch.Flow == (Flow{}) && o.resting.small >= maxSmallResting {
		return true, o.postpone(job, one.book(now), fanfare.WaitBroadcastRate, "", finished)
	}
	one.jobs = append(one.jobs, job)
	o.resting.count(job, +1)
	return true, finished
}

// restsInGroup reports whether a job has a broadcast with a rate that lets it leave
// together with others which wait. The caller holds mu.
func (o *Sender) restsInGroup(job *Job, event fanfare.EventRef) bool {
	if !o.limits.groups(job) {
		return false
	}
	n, limited := o.options.Flows.Group(event, o.settings.Multicast)
	return limited && n > 1 && o.waiting.countShared(job, 1) > 0
}

// restingGroup is how many of the jobs that rest leave together next. The caller holds
// mu.
func (o *Sender) restingGroup(event fanfare.EventRef, jobs []*Job) int {
	most, _ := o.options.Flows.Group(event, o.settings.Multicast)
	return groupIn(jobs, most)
}

// groupIn is how many of the first jobs are one message, most at most.
func groupIn(jobs []*Job, most int) (n int) {
	for n = 1; n < most && n < len(jobs) && jobs[n].shares(jobs[0]); {
		n++
	}
	return n
}

// book is until when one more is put off.
func (r *rest) book(now time.Time) time.Time {
	if earliest := now.Add(restAgain); r.booked.Before(earliest) {
		r.booked = earliest
	}
	r.booked = r.booked.Add(r.span)
	if latest := latestBooked(now, bookedLongest); r.booked.After(latest) {
		return latest
	}
	return r.booked
}

// unpaid gives back what was counted for a job that does not leave. The caller
// holds mu.
func (o *Sender) unpaid(job *Job) {
	if job.paid {
		job.paid = false
		o.options.Flows.Back(job.event())
	}
}

// wakeResting sets the alarm for the first broadcast that may go on. The caller
// holds mu.
func (o *Sender) wakeResting(now time.Time) {
	var first time.Time
	for _, one := range o.resting.of {
		if first.IsZero() || one.until.Before(first) {
			first = one.until
		}
	}
	switch {
	case first.IsZero() || o.ctx.Err() != nil:
	case o.resting.alarm == nil:
		o.resting.alarm = time.AfterFunc(first.Sub(now), o.goOn)
	default:
		o.resting.alarm.Reset(first.Sub(now))
	}
}

// goOn has leave what the rates of broadcasts allow by now.
func (o *Sender) goOn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return
	}
	now := o.options.Clock.Now()
	var ready []*Job
	for event, one := range o.resting.of {
		if one.until.After(now) {
			continue
		}
		for len(one.jobs) > 0 {
			n := o.restingGroup(event, one.jobs)
			wait := o.options.Flows.Take(event, n, now)
			if wait > 0 {
				one.until, one.span = now.Add(wait), max(one.span, wait/time.Duration(n))
				break
			}
			for _, job := range one.jobs[:n] {
				o.resting.count(job, -1)
				job.paid = true
				ready = append(ready, job)
			}
			clear(one.jobs[:n])
			one.jobs = one.jobs[n:]
		}
		if len(one.jobs) == 0 {
			delete(o.resting.of, event)
		}
	}
	o.bring(ready)
	o.waiting.tellOfRoom()
	o.wakeResting(now)
}

// FlowsChanged tells that rates of broadcasts have changed: they are in force at
// once, also for what waits for those of before, or has waited for them and waits
// for a connection or for the channel's own rate.
func (o *Sender) FlowsChanged() {
	o.mu.Lock()
	o.remove(func(job *Job) bool { o.unpaid(job); return false })
	now := o.options.Clock.Now()
	for _, one := range o.resting.of {
		one.until = now
	}
	o.mu.Unlock()
	o.goOn()
}

// removeResting takes out the jobs for which gone is true, and returns them. The
// caller holds mu.
func (o *Sender) removeResting(gone func(*Job) bool) (removed []*Job) {
	for event, one := range o.resting.of {
		one.jobs = slices.DeleteFunc(one.jobs, func(job *Job) bool {
			if !gone(job) {
				return false
			}
			removed = append(removed, job)
			o.resting.count(job, -1)
			return true
		})
		if len(one.jobs) == 0 {
			delete(o.resting.of, event)
		}
	}
	if len(removed) > 0 {
		o.waiting.tellOfRoom()
	}
	return removed
}
