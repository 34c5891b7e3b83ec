package deliver

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// destination is the state of one destination, learned from its replies.
type destination struct {
	name    string
	rate    limit.Rate        // from the settings
	learned limit.LearnedRate // from its refusals
	window  limit.Window
	breaker limit.Breaker
	latency limit.Median

	active    int
	groups    map[uint64]int // active recipients of each group
	overdue   int            // active jobs that take too long
	fast      int64          // messages that did not take long
	lateInRow int            // messages in a row that took long while the relay was fast with messages to others
	slow      bool           // takes much longer than others
	impaired  bool           // is in destinations.impaired

	throttled   laneQueue // jobs that wait for this destination
	readmitted  int       // jobs back in the queue and not yet taken
	bookedUntil time.Time // until when its rate is reserved for postponed jobs
	wakeAt      time.Time // when a throttled job may be sent
	heapIndex   int       // in wakeHeap, from 1; 0: not in it
	inSlowQueue bool      // waits in throttledJobs.slowQueue

	accepted, refused int64 // since the destination is known
	lastText          string
	lastAt            time.Time
	lastReplyAt       time.Time // Outcome.At of the reply behind lastText, which may concern several messages

	used         time.Time
	newer, older *destination
}

// firstWindow is the number of messages that may be active for an unknown destination of a
// direct channel. A relay is known to accept messages for its destinations: each of these
// may use all connections until it refuses.
const firstWindow = 4

// restrict applies the configured limits.
func (d *destination) restrict(own DestinationLimit, now time.Time) {
	if own.Rate == 0 {
		own.Rate = math.Inf(1)
	}
	d.rate.Set(own.Rate, now)
	d.window.Bound(own.Connections)
	d.bookedUntil = time.Time{}
}

// limited reports whether the destination has a rate.
func (d *destination) limited() bool { return d != nil && (d.rate.Limited() || d.learned.Limited()) }

// wait returns how long the rate allows no message.
func (d *destination) wait(now time.Time) time.Duration {
	return max(d.rate.Wait(now), d.learned.Wait(now))
}

// waitFor returns how long the rate does not allow n messages together.
func (d *destination) waitFor(n int, now time.Time) time.Duration {
	return max(d.rate.WaitFor(n, false, now), d.learned.WaitFor(n, false, now))
}

// take counts n messages that are sent together.
func (d *destination) take(n int, now time.Time) {
	d.rate.TakeFor(n, now)
	d.learned.TakeFor(n, now)
}

// group returns how many of the throttled jobs are sent together next, at most most.
// counted is true if the rate of the destination has counted them already: they were
// readmitted, but another connection took their place.
func (d *destination) group(most int) (n int, counted bool) {
	for _, jobs := range d.throttled {
		if len(jobs) == 0 {
			continue
		}
		if jobs[0].Message.SharedContent == 0 {
			return 1, jobs[0].destinationCounted
		}
		if counted = jobs[0].destinationCounted; !counted {
			most = min(d.rate.GroupSize(most), d.learned.GroupSize(most))
		}
		end := slices.IndexFunc(jobs, func(job *Job) bool { return job.destinationCounted != counted })
		if end < 0 {
			end = len(jobs)
		}
		return sameContentRun(jobs[:end], most), counted
	}
	return 1, false
}

// hasCapacity reports whether another throttled job may return to the queue.
func (d *destination) hasCapacity(now time.Time) bool {
	return d.wait(now) == 0 && d.window.HasCapacity(d.active+d.readmitted) && (d.readmitted == 0 || !d.limited())
}

// spacing estimates the time between two messages; 0 if it is not known yet.
func (d *destination) spacing() time.Duration {
	return max(d.rate.Interval(), d.learned.Interval(), d.latency.Value()/time.Duration(d.window.Size()))
}

// learn updates the state with the outcome of one message.
func (d *destination) learn(outcome *driver.Outcome, bad, probe bool, advice Advice, now time.Time) {
	taken, throttled := outcome.Verdict == driver.Accepted, outcome.Class == fanfare.ClassThrottled
	d.window.Answered(!bad, d.active)
	if taken || throttled {
		d.learned.Answered(throttled, now)
	}
	switch {
	case taken:
		d.accepted++
		d.breaker.Succeeded(now, probe)
	case bad:
		d.refused++
		d.lastText, d.lastAt, d.lastReplyAt = outcome.Text, now, outcome.At
		d.breaker.Failed(now, probe, d.active, rand.Float64())
		advice.Suspend = max(advice.Suspend, min(outcome.RetryAfter, longestSuspension))
	case outcome.Verdict == driver.Lost || outcome.Class == fanfare.ClassNetwork: // the path to the destination failed, not the destination
		if probe {
			d.breaker.ProbeReturned()
		}
	case probe || outcome.Class != "": // it replied, about this one message
		d.breaker.Succeeded(now, probe)
	}
	if advice.Suspend > 0 {
		d.breaker.Suspend(now, advice.Suspend)
	}
	if advice.Slow {
		d.window.Shrink()
	}
}

// longestSuspension is the maximum pause that a destination can ask for.
const longestSuspension = 24 * time.Hour

// Destinations contains the limits of destinations.
type Destinations struct {
	Each DestinationLimit
	Only map[string]DestinationLimit // by name; zero fields are taken from Each
	// Site returns the name under which a destination shares its limits with others. It may be
	// nil. It must be fast and safe for concurrent use.
	Site func(name string) string
}

// A DestinationLimit limits the messages to one destination.
type DestinationLimit struct {
	Rate        float64 // messages per second; 0: no limit
	Connections int     // active messages; 0: no limit
}

// of returns the configured limits of one destination.
func (s *Destinations) of(name string) DestinationLimit {
	own := s.Only[name]
	if own.Rate == 0 {
		own.Rate = s.Each.Rate
	}
	if own.Connections == 0 {
		own.Connections = s.Each.Connections
	}
	return own
}

const (
	// maxDestinations is the maximum number of known destinations. Beyond it, the least
	// recently used one is evicted.
	maxDestinations = 100_000
	// forgetAfter is the time after which an unused destination is forgotten.
	forgetAfter = time.Hour
	// maxForgetScan is the number of destinations that are examined to forget one.
	maxForgetScan = 16
)

// destinations contains the known destinations.
type destinations struct {
	settings    *Destinations
	firstWindow int // of an unknown destination
	known       map[string]*destination
	newest      *destination
	oldest      *destination
	slowActive  int // active jobs of slow destinations
	slowCount   int
	impaired    map[*destination]struct{}
}

func (s *destinations) configure(settings *Destinations, first int, now time.Time) {
	s.settings, s.firstWindow = settings, first
	if s.known == nil {
		s.known = map[string]*destination{}
	}
	for name, d := range s.known {
		d.restrict(settings.of(name), now)
		s.updateHealth(d)
	}
}

// of returns the destination with a name, or nil if the name is empty.
func (s *destinations) of(name string, now time.Time) *destination {
	if name == "" {
		return nil
	}
	if s.settings.Site != nil && s.settings.Only[name] == (DestinationLimit{}) {
		name = s.settings.Site(name)
	}
	d := s.known[name]
	if d == nil {
		s.forget(now)
		own := s.settings.of(name)
		d = &destination{name: name, window: limit.NewWindow(s.firstWindow, own.Connections)}
		d.restrict(own, now)
		s.known[name] = d
	} else if d != s.newest {
		s.unlink(d)
	}
	if d != s.newest {
		s.link(d)
	}
	d.used = now
	return d
}

// forget makes space for one more destination.
func (s *destinations) forget(now time.Time) {
	d := s.oldest
	for range maxForgetScan {
		if d == nil || len(s.known) < maxDestinations && now.Sub(d.used) < forgetAfter {
			return
		}
		newer := d.newer
		if d.active == 0 && d.throttled.len() == 0 && d.readmitted == 0 {
			s.unlink(d)
			s.setSlow(d, false)
			delete(s.known, d.name)
			delete(s.impaired, d)
		}
		d = newer
	}
}

func (s *destinations) link(d *destination) {
	d.older, d.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = d
	} else {
		s.oldest = d
	}
	s.newest = d
}

func (s *destinations) unlink(d *destination) {
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		s.newest = d.older
	}
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		s.oldest = d.newer
	}
}

// countActive changes the number of active jobs of a destination.
func (s *destinations) countActive(d *destination, n int) {
	d.active += n
	if d.slow {
		s.slowActive += n
	}
}

// setSlow marks a destination as slow or not.
func (s *destinations) setSlow(d *destination, slow bool) {
	if d.slow == slow {
		return
	}
	if d.slow = slow; slow {
		s.slowActive += d.active
		s.slowCount++
	} else {
		s.slowActive -= d.active
		s.slowCount--
	}
	s.updateHealth(d)
}
