package deliver

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// BroadcastRates contains the rates of individual broadcasts, which all senders share. The sender
// calls it while it holds its lock.
type BroadcastRates interface {
	// GroupSize returns the number of messages of a broadcast that may be sent together next,
	// at most the given number, and whether the broadcast has a rate.
	GroupSize(event fanfare.EventRef, most int) (n int, limited bool)
	// Take counts n messages of a broadcast that are sent together now, or returns how long
	// they must wait.
	Take(event fanfare.EventRef, n int, now time.Time) (wait time.Duration)
	// Refund takes back the count of a message that is not sent.
	Refund(event fanfare.EventRef)
}

// rateLimitedJobs holds the jobs of broadcasts that have used up their rate, by broadcast.
// Jobs of other broadcasts overtake them. The sender's lock guards it.
type rateLimitedJobs struct {
	broadcasts map[fanfare.EventRef]*rateLimitedBroadcast
	small      int         // jobs of batches that hold several broadcasts
	timer      *time.Timer // fires when the first broadcast may continue
}

type rateLimitedBroadcast struct {
	jobs        []*Job
	until       time.Time
	interval    time.Duration // between two messages, as far as known
	bookedUntil time.Time     // until when the rate is reserved for postponed jobs
}

const (
	// maxSmallRateLimited is the maximum number of rate-limited jobs of batches that hold
	// several broadcasts: small broadcasts and retries. Further ones are postponed, so that
	// small broadcasts without a rate find capacity.
	maxSmallRateLimited = fanfare.MaxBatch
	// minPostponement is the minimum time for which they are postponed.
	minPostponement = time.Minute
)

func (r *rateLimitedJobs) len() int {
	n := 0
	for _, one := range r.broadcasts {
		n += len(one.jobs)
	}
	return n
}

// lenOf returns the number of rate-limited jobs of a flow.
func (r *rateLimitedJobs) lenOf(f Flow) int {
	if one := r.broadcasts[f]; one != nil {
		return len(one.jobs)
	}
	return 0
}

func (r *rateLimitedJobs) count(job *Job, n int) {
	if job.batch.Flow == (Flow{}) {
		r.small += n
	}
}

func (job *Job) event() fanfare.EventRef {
	return fanfare.EventRef{Day: job.Message.Delivery.Day, Seq: job.Message.Delivery.Manifest.Event()}
}

// awaitsBroadcastRate reports whether a job must wait for the rate of its broadcast. If
// so, it keeps or postpones the job. The caller holds mu.
func (s *Sender) awaitsBroadcastRate(job *Job, now time.Time, finished []*Batch) (bool, []*Batch) {
	if s.options.BroadcastRates == nil || job.broadcastCounted {
		return false, finished
	}
	event := job.event()
	one := s.rateLimited.broadcasts[event]
	if one == nil {
		var wait time.Duration // zero for a group: readmitRateLimited forms groups
		if !s.awaitsGroupRate(job, event) {
			if wait = s.options.BroadcastRates.Take(event, 1, now); wait <= 0 {
				job.broadcastCounted = true
				return false, finished
			}
		}
		if s.rateLimited.broadcasts == nil {
			s.rateLimited.broadcasts = map[fanfare.EventRef]*rateLimitedBroadcast{}
		}
		one = &rateLimitedBroadcast{until: now.Add(wait), interval: wait}
		s.rateLimited.broadcasts[event] = one
		s.setRateTimer(now)
	}
	if len(one.jobs) > 0 && job.batch.Flow == (Flow{}) && s.rateLimited.small >= maxSmallRateLimited {
		return true, s.postpone(job, one.book(now), fanfare.WaitBroadcastRate, "", finished)
	}
	one.jobs = append(one.jobs, job)
	s.rateLimited.count(job, +1)
	return true, finished
}

// awaitsGroupRate reports whether the rate of the job's broadcast allows a group and
// another job with the same content waits. The caller holds mu.
func (s *Sender) awaitsGroupRate(job *Job, event fanfare.EventRef) bool {
	if !s.limits.groupable(job) {
		return false
	}
	n, limited := s.options.BroadcastRates.GroupSize(event, s.settings.Multicast)
	return limited && n > 1 && s.waiting.countSameContent(job, 1) > 0
}

// rateLimitedGroup returns how many of the rate-limited jobs are sent together next. The
// caller holds mu.
func (s *Sender) rateLimitedGroup(event fanfare.EventRef, jobs []*Job) int {
	most, _ := s.options.BroadcastRates.GroupSize(event, s.settings.Multicast)
	return sameContentRun(jobs, most)
}

// sameContentRun returns how many of the first jobs share their content, at most most.
func sameContentRun(jobs []*Job, most int) (n int) {
	for n = 1; n < most && n < len(jobs) && jobs[n].sharesContent(jobs[0]); {
		n++
	}
	return n
}

// book returns the time until which another job is postponed.
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

// refundBroadcastRate takes back the count of a job that is not sent. The caller holds mu.
func (s *Sender) refundBroadcastRate(job *Job) {
	if job.broadcastCounted {
		job.broadcastCounted = false
		s.options.BroadcastRates.Refund(job.event())
	}
}

// setRateTimer sets the timer for the first broadcast that may continue. The caller holds
// mu.
func (s *Sender) setRateTimer(now time.Time) {
	var first time.Time
	for _, one := range s.rateLimited.broadcasts {
		if first.IsZero() || one.until.Before(first) {
			first = one.until
		}
	}
	switch {
	case first.IsZero() || s.ctx.Err() != nil:
	case s.rateLimited.timer == nil:
		s.rateLimited.timer = time.AfterFunc(first.Sub(now), s.readmitRateLimited)
	default:
		s.rateLimited.timer.Reset(first.Sub(now))
	}
}

// readmitRateLimited puts the jobs back into the queue that the rates of their broadcasts
// allow by now.
func (s *Sender) readmitRateLimited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	now := s.options.Clock.Now()
	var ready []*Job
	for event, one := range s.rateLimited.broadcasts {
		if one.until.After(now) {
			continue
		}
		for len(one.jobs) > 0 {
			n := s.rateLimitedGroup(event, one.jobs)
			wait := s.options.BroadcastRates.Take(event, n, now)
			if wait > 0 {
				one.until, one.interval = now.Add(wait), max(one.interval, wait/time.Duration(n))
				break
			}
			for _, job := range one.jobs[:n] {
				s.rateLimited.count(job, -1)
				job.broadcastCounted = true
				ready = append(ready, job)
			}
			clear(one.jobs[:n])
			one.jobs = one.jobs[n:]
		}
		if len(one.jobs) == 0 {
			delete(s.rateLimited.broadcasts, event)
		}
	}
	s.requeue(ready)
	s.waiting.signalCapacity()
	s.setRateTimer(now)
}

// BroadcastRatesChanged applies changed rates of broadcasts immediately, including to jobs that
// waited for the old rate and to jobs that were counted and still wait for a connection or
// for the channel's rate.
func (s *Sender) BroadcastRatesChanged() {
	s.mu.Lock()
	s.remove(func(job *Job) bool { s.refundBroadcastRate(job); return false })
	now := s.options.Clock.Now()
	for _, one := range s.rateLimited.broadcasts {
		one.until = now
	}
	s.mu.Unlock()
	s.readmitRateLimited()
}

// removeRateLimited removes and returns the jobs for which gone returns true. The caller
// holds mu.
func (s *Sender) removeRateLimited(gone func(*Job) bool) (removed []*Job) {
	for event, one := range s.rateLimited.broadcasts {
		one.jobs = slices.DeleteFunc(one.jobs, func(job *Job) bool {
			if !gone(job) {
				return false
			}
			removed = append(removed, job)
			s.rateLimited.count(job, -1)
			return true
		})
		if len(one.jobs) == 0 {
			delete(s.rateLimited.broadcasts, event)
		}
	}
	if len(removed) > 0 {
		s.waiting.signalCapacity()
	}
	return removed
}
