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

// destination is one of whom jobs go to, as its answers show it.
type destination struct {
	name    string
	rate    limit.Rate        // as configured
	learned limit.LearnedRate // as its refusals tell
	window  limit.Window
	breaker limit.Breaker
	latency limit.Median

	active    int
	groups    map[uint64]int // recipients under way of each group that has some here
	overdue   int            // of these, what takes too long
	fast      int64          // messages that did not take long
	lateInRow int            // messages in a row that did, while the relay was quick with those to others
	slow      bool           // takes much longer than others
	impaired  bool           // is in the list of those

	throttled   laneQueue // jobs that wait for it
	readmitted  int       // of these, brought back and not yet taken
	bookedUntil time.Time // until when its time is given to what was put off
	wakeAt      time.Time // when an aside may leave
	heapIndex   int       // in the alarm, from 1; 0: it has none
	inSlowQueue bool      // in the line for the share of the slow ones

	accepted, refused int64 // since it is known
	lastText          string
	lastAt            time.Time
	lastReplyAt       time.Time // of the answer behind lastText, which may be that of several messages

	used         time.Time
	newer, older *destination
}

// firstWindow is how many messages may be under way to a destination of which
// nothing is known, where connections go to it. A relay is known to stand for its
// destinations: of these each may have all connections until it refuses.
const firstWindow = 4

// restrict puts what is configured in force.
func (d *destination) restrict(own DestinationLimit, now time.Time) {
	if own.Rate == 0 {
		own.Rate = math.Inf(1)
	}
	d.rate.Set(own.Rate, now)
	d.window.Bound(own.Connections)
	d.bookedUntil = time.Time{}
}

// limited reports whether a rate is to be kept.
func (d *destination) limited() bool { return d != nil && (d.rate.Limited() || d.learned.Limited()) }

// wait is how long the rate lets nothing pass.
func (d *destination) wait(now time.Time) time.Duration {
	return max(d.rate.Wait(now), d.learned.Wait(now))
}

// waitFor is how long the rate does not let n messages pass together.
func (d *destination) waitFor(n int, now time.Time) time.Duration {
	return max(d.rate.WaitFor(n, false, now), d.learned.WaitFor(n, false, now))
}

// take counts n messages that leave together.
func (d *destination) take(n int, now time.Time) {
	d.rate.TakeFor(n, now)
	d.learned.TakeFor(n, now)
}

// group returns how many of the jobs that wait aside leave together next, where the channel
// lets most do so. It is counted if the rate of the destination counted them before: another
// connection took the place for which they were brought back.
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

// hasRoom reports whether one more of those that wait aside may come back.
func (d *destination) hasRoom(now time.Time) bool {
	return d.wait(now) == 0 && d.window.Room(d.active+d.readmitted) && (d.readmitted == 0 || !d.limited())
}

// spacing is about how long after one message the next one leaves; 0 if that is
// not known yet.
func (d *destination) spacing() time.Duration {
	return max(d.rate.Interval(), d.learned.Interval(), d.latency.Value()/time.Duration(d.window.Size()))
}

// learn takes an answer in.
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
	case outcome.Verdict == driver.Lost || outcome.Class == fanfare.ClassNetwork: // the way there, and not the destination
		if probe {
			d.breaker.ProbeReturned()
		}
	case probe || outcome.Class != "": // it answers, about one message
		d.breaker.Succeeded(now, probe)
	}
	if advice.Suspend > 0 {
		d.breaker.Suspend(now, advice.Suspend)
	}
	if advice.Slow {
		d.window.Shrink()
	}
}

// longestSuspension bounds for how long a destination may ask to be left alone.
const longestSuspension = 24 * time.Hour

// Destinations are the limits of each of whom jobs go to.
type Destinations struct {
	Each DestinationLimit
	Only map[string]DestinationLimit // by name; what is zero in one is as in Each
	// Site names what a destination shares its limits with; nil: nothing. It must be
	// quick, and safe for concurrent use.
	Site func(name string) string
}

// A DestinationLimit bounds what goes to one destination.
type DestinationLimit struct {
	Rate        float64 // messages per second; 0: as much as it takes
	Connections int     // messages under way at once; 0: as many as it takes
}

// of returns what is configured for one destination.
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
	// maxDestinations is how many are known at once; beyond, the one that was not
	// used for longest is forgotten, and is a stranger when it comes again.
	maxDestinations = 100_000
	// forgetAfter is how long one is known that is not used.
	forgetAfter = time.Hour
	// looks is how many are looked at for one that can be forgotten.
	maxForgetScan = 16
)

// destinations are those that are known.
type destinations struct {
	settings    *Destinations
	firstWindow int // window of one of which nothing is known
	known       map[string]*destination
	newest      *destination
	oldest      *destination
	slowActive  int // jobs under way to slow ones
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

// of returns the destination with a name, nil if that is empty.
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

// forget makes room for one more.
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

// countActive counts what is under way to one.
func (s *destinations) countActive(d *destination, n int) {
	d.active += n
	if d.slow {
		s.slowActive += n
	}
}

// setSlow says whether one is slow.
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
