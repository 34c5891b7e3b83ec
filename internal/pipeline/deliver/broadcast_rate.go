package deliver

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// BroadcastRates keep the rates of single broadcasts, over all outlets together. They are
// asked under the outlet's lock.
type BroadcastRates interface {
	// Group returns the size of the next group of a broadcast, where most messages may
	// leave together, and whether it has a rate.
	GroupSize(event fanfare.EventRef, most int) (n int, limited bool)
	// Take counts n messages of a broadcast that leave together now, or tells how long
	// they have to wait.
	Take(event fanfare.EventRef, n int, now time.Time) (wait time.Duration)
	// Back gives back a message that was counted and does not leave.
	Refund(event fanfare.EventRef)
}

// rateLimitedJobs are jobs of broadcasts that have left as fast as they may, by broadcast.
// Others pass them. It is guarded by the outlet.
type rateLimitedJobs struct {
	broadcasts map[fanfare.EventRef]*rateLimitedBroadcast
	small      int         // jobs of batches that are no broadcast's own
	timer      *time.Timer // for the first that may go on
}

type rateLimitedBroadcast struct {
	jobs        []*Job
	until       time.Time
	interval    time.Duration // between two of them, as far as is known
	bookedUntil time.Time     // until when its time is given to what was put off
}

const (
	// maxSmallResting is how many jobs may rest of batches that are no broadcast's
	// own: those of small ones, and retries. The others are put off, so that what is
	// small and has no rate finds room.
	maxSmallRateLimited = fanfare.MaxBatch
	// restAgain is for how long they are put off at least.
	minPostponement = time.Minute
)

func (r *rateLimitedJobs) len() int {
	n := 0
	for _, one := range r.broadcasts {
		n += len(one.jobs)
	}
	return n
}

// lenOf is how many jobs of a flow rest.
func (r *rateLimitedJobs) lenOf(f Flow) int {
	if one := r.broadcasts[f]; one != nil {
		return len(one.jobs)
	}
	return 0
}

// count counts a job in or out.
func (r *rateLimitedJobs) count(job *Job, n int) {
	if job.batch.Flow == (Flow{}) {
		r.small += n
	}
}

func (job *Job) event() fanfare.EventRef {
	return fanfare.EventRef{Day: job.Message.Delivery.Day, Seq: job.Message.Delivery.Manifest.Event()}
}

// awaitsBroadcastRate reports whether a job has to wait for the rate of its broadcast, and
// keeps it meanwhile, or puts it off. The caller holds mu.
func (o *Sender) awaitsBroadcastRate(job *Job, now time.Time, finished []*Batch) (bool, []*Batch) {
	if o.options.BroadcastRates == nil || job.broadcastCounted {
		return false, finished
	}
	event := job.event()
	one := o.rateLimited.broadcasts[event]
	if one == nil {
		var wait time.Duration // none for a group, which is made of what rests
		if !o.awaitsGroupRate(job, event) {
			if wait = o.options.BroadcastRates.Take(event, 1, now); wait <= 0 {
				job.broadcastCounted = true
				return false, finished
			}
		}
		if o.rateLimited.broadcasts == nil {
			o.rateLimited.broadcasts = map[fanfare.EventRef]*rateLimitedBroadcast{}
		}
		one = &rateLimitedBroadcast{until: now.Add(wait), interval: wait}
		o.rateLimited.broadcasts[event] = one
		o.setRateTimer(now)
	}
	if len(one.jobs) > 0 && job.batch.Flow == (Flow{}) && o.rateLimited.small >= maxSmallRateLimited {
		return true, o.postpone(job, one.book(now), fanfare.WaitBroadcastRate, "", finished)
	}
	one.jobs = append(one.jobs, job)
	o.rateLimited.count(job, +1)
	return true, finished
}

// awaitsGroupRate reports whether a job has a broadcast with a rate that lets it leave
// together with others which wait. The caller holds mu.
func (o *Sender) awaitsGroupRate(job *Job, event fanfare.EventRef) bool {
	if !o.limits.groupable(job) {
		return false
	}
	n, limited := o.options.BroadcastRates.GroupSize(event, o.settings.Multicast)
	return limited && n > 1 && o.waiting.countSameContent(job, 1) > 0
}

// rateLimitedGroup is how many of the jobs that rest leave together next. The caller holds
// mu.
func (o *Sender) rateLimitedGroup(event fanfare.EventRef, jobs []*Job) int {
	most, _ := o.options.BroadcastRates.GroupSize(event, o.settings.Multicast)
	return sameContentRun(jobs, most)
}

// sameContentRun is how many of the first jobs are one message, most at most.
func sameContentRun(jobs []*Job, most int) (n int) {
	for n = 1; n < most && n < len(jobs) && jobs[n].sharesContent(jobs[0]); {
		n++
	}
	return n
}

// book is until when one more is put off.
func (r *rateLimitedBroadcast) book(now time.Time) time.Time {
	if earliest := now.Add(minPostponement); r.bookedUntil.Before(earliest) {
		r.bookedUntil = earliest
	}
	r.bookedUntil = r.bookedUntil.Add(r.interval)
	if latest := latestPostponement(now, longestPostponement); r.bookedUntil.After(latest) {
		return latest
	}
	return r.bookedUntil
}

// refundBroadcastRate gives back what was counted for a job that does not leave. The caller
// holds mu.
func (o *Sender) refundBroadcastRate(job *Job) {
	if job.broadcastCounted {
		job.broadcastCounted = false
		o.options.BroadcastRates.Refund(job.event())
	}
}

// setRateTimer sets the alarm for the first broadcast that may go on. The caller
// holds mu.
func (o *Sender) setRateTimer(now time.Time) {
	var first time.Time
	for _, one := range o.rateLimited.broadcasts {
		if first.IsZero() || one.until.Before(first) {
			first = one.until
		}
	}
	switch {
	case first.IsZero() || o.ctx.Err() != nil:
	case o.rateLimited.timer == nil:
		o.rateLimited.timer = time.AfterFunc(first.Sub(now), o.readmitRateLimited)
	default:
		o.rateLimited.timer.Reset(first.Sub(now))
	}
}

// readmitRateLimited has leave what the rates of broadcasts allow by now.
func (o *Sender) readmitRateLimited() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return
	}
	now := o.options.Clock.Now()
	var ready []*Job
	for event, one := range o.rateLimited.broadcasts {
		if one.until.After(now) {
			continue
		}
		for len(one.jobs) > 0 {
			n := o.rateLimitedGroup(event, one.jobs)
			wait := o.options.BroadcastRates.Take(event, n, now)
			if wait > 0 {
				one.until, one.interval = now.Add(wait), max(one.interval, wait/time.Duration(n))
				break
			}
			for _, job := range one.jobs[:n] {
				o.rateLimited.count(job, -1)
				job.broadcastCounted = true
				ready = append(ready, job)
			}
			clear(one.jobs[:n])
			one.jobs = one.jobs[n:]
		}
		if len(one.jobs) == 0 {
			delete(o.rateLimited.broadcasts, event)
		}
	}
	o.requeue(ready)
	o.waiting.signalRoom()
	o.setRateTimer(now)
}

// BroadcastRatesChanged tells that rates of broadcasts have changed: they are in force at
// once, also for what waits for those of before, or has waited for them and waits
// for a connection or for the channel's own rate.
func (o *Sender) BroadcastRatesChanged() {
	o.mu.Lock()
	o.remove(func(job *Job) bool { o.refundBroadcastRate(job); return false })
	now := o.options.Clock.Now()
	for _, one := range o.rateLimited.broadcasts {
		one.until = now
	}
	o.mu.Unlock()
	o.readmitRateLimited()
}

// removeRateLimited takes out the jobs for which gone is true, and returns them. The
// caller holds mu.
func (o *Sender) removeRateLimited(gone func(*Job) bool) (removed []*Job) {
	for event, one := range o.rateLimited.broadcasts {
		one.jobs = slices.DeleteFunc(one.jobs, func(job *Job) bool {
			if !gone(job) {
				return false
			}
			removed = append(removed, job)
			o.rateLimited.count(job, -1)
			return true
		})
		if len(one.jobs) == 0 {
			delete(o.rateLimited.broadcasts, event)
		}
	}
	if len(removed) > 0 {
		o.waiting.signalRoom()
	}
	return removed
}
