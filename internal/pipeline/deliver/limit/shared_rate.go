package limit

import (
	"sync"
	"time"
)

const (
	// turnSpan is what one share may be ahead of another that waits, as a time in
	// which the rate lets so many pass; of a slow rate it is one message.
	maxLead = 20 * time.Millisecond
	// lateness is how long after the time that it was told a share is waited for. It
	// may have nothing to send any more.
	lateness = 20 * time.Millisecond
)

// SharedRate is a rate that several spend together, each by a Share. It is spent by
// use: one that sends alone has all of it. Of those that wait none gets ahead of
// another by more than a turn. It is safe for concurrent use.
type SharedRate struct {
	mu      sync.Mutex
	rate    Rate
	waiting []*Share
	spent   float64 // of the one that is furthest behind; who comes anew begins with it
}

// A Share is what one of several spends of a Shared.
type Share struct {
	shared        *SharedRate
	spent         float64   // how often it had one
	expectedUntil time.Time // it is waited for; zero: it does not wait
}

// NewShare returns a share for one more.
func (s *SharedRate) NewShare() *Share { return &Share{shared: s} }

// Set changes the rate, as Rate.Set. Who waits may ask again at once.
func (s *SharedRate) Set(perSecond float64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate.Set(perSecond, now)
	for _, one := range s.waiting {
		one.expectedUntil = time.Time{}
	}
	s.waiting = nil
}

// GroupSize returns the size of the next group, where most messages may leave together.
func (s *Share) GroupSize(most int) int {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.rate.GroupSize(most)
}

// Take counts n messages that leave together now, or says how long those of this
// share may not.
func (s *Share) Take(now time.Time, n int, urgent bool) (taken int, wait time.Duration) {
	all := s.shared
	all.mu.Lock()
	defer all.mu.Unlock()
	if !all.rate.Limited() {
		return n, 0
	}
	all.forget(now)
	if s.expectedUntil.IsZero() {
		s.spent = max(s.spent, all.spent)
	}
	wait = all.rate.WaitFor(n, urgent, now)
	ahead := max(1, float64(maxLead)/float64(all.rate.Interval()))
	for _, other := range all.waiting {
		if other != s && other.spent+ahead <= s.spent {
			wait = max(wait, other.expectedUntil.Sub(now))
		}
	}
	if wait > 0 {
		if s.expectedUntil.IsZero() {
			all.waiting = append(all.waiting, s)
		}
		s.expectedUntil = now.Add(wait + lateness)
		return 0, wait
	}
	all.rate.TakeFor(n, now)
	least := s.spent
	s.spent += float64(n)
	s.expectedUntil = time.Time{}
	all.forget(now)
	for _, other := range all.waiting {
		least = min(least, other.spent)
	}
	all.spent = max(all.spent, least)
	return n, 0
}

// Refund returns n messages that were counted and did not leave.
func (s *Share) Refund(_ time.Time, n int) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if s.shared.rate.Limited() {
		s.shared.rate.RefundFor(n)
	}
}

// CountsAtSend reports that messages are counted when they leave, and not ahead.
func (s *Share) CountsAtSend() bool {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.rate.Limited()
}

// forget leaves out of those that wait whom nobody waits for any more.
func (s *SharedRate) forget(now time.Time) {
	kept := s.waiting[:0]
	for _, one := range s.waiting {
		if !one.expectedUntil.IsZero() && !now.After(one.expectedUntil) {
			kept = append(kept, one)
		} else {
			one.expectedUntil = time.Time{}
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}
