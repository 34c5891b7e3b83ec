package limit

import (
	"sync"
	"time"
)

const (
	// turnSpan is what one share may be ahead of another that waits, as a time in
	// which the rate lets so many pass; of a slow rate it is one message.
	turnSpan = 20 * time.Millisecond
	// lateness is how long after the time that it was told a share is waited for. It
	// may have nothing to send any more.
	lateness = 20 * time.Millisecond
)

// Shared is a rate that several spend together, each by a Share. It is spent by
// use: one that sends alone has all of it. Of those that wait none gets ahead of
// another by more than a turn. It is safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	rate    Rate
	waiting []*Share
	turn    float64 // of the one that is furthest behind; who comes anew begins with it
}

// A Share is what one of several spends of a Shared.
type Share struct {
	of    *Shared
	turn  float64   // how often it had one
	until time.Time // it is waited for; zero: it does not wait
}

// Share returns a share for one more.
func (s *Shared) Share() *Share { return &Share{of: s} }

// Set changes the rate, as Rate.Set. Who waits may ask again at once.
func (s *Shared) Set(perSecond float64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate.Set(perSecond, now)
	for _, one := range s.waiting {
		one.until = time.Time{}
	}
	s.waiting = nil
}

// Group returns the size of the next group, where most messages may leave together.
func (s *Share) Group(most int) int {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.rate.Group(most)
}

// Take counts n messages that leave together now, or says how long those of this
// share may not.
func (s *Share) Take(now time.Time, n int, urgent bool) (taken int, wait time.Duration) {
	all := s.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if !all.rate.Limited() {
		return n, 0
	}
	all.forget(now)
	if s.until.IsZero() {
		s.turn = max(s.turn, all.turn)
	}
	wait = all.rate.WaitFor(n, urgent, now)
	ahead := max(1, float64(turnSpan)/float64(all.rate.Interval()))
	for _, other := range all.waiting {
		if other != s && other.turn+ahead <= s.turn {
			wait = max(wait, other.until.Sub(now))
		}
	}
	if wait > 0 {
		if s.until.IsZero() {
			all.waiting = append(all.waiting, s)
		}
		s.until = now.Add(wait + lateness)
		return 0, wait
	}
	all.rate.TakeFor(n, now)
	least := s.turn
	s.turn += float64(n)
	s.until = time.Time{}
	all.forget(now)
	for _, other := range all.waiting {
		least = min(least, other.turn)
	}
	all.turn = max(all.turn, least)
	return n, 0
}

// Back returns n messages that were counted and did not leave.
func (s *Share) Back(_ time.Time, n int) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.rate.Limited() {
		s.of.rate.BackFor(n)
	}
}

// Even reports that messages are counted when they leave, and not ahead.
func (s *Share) Even() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.rate.Limited()
}

// forget leaves out of those that wait whom nobody waits for any more.
func (s *Shared) forget(now time.Time) {
	kept := s.waiting[:0]
	for _, one := range s.waiting {
		if !one.until.IsZero() && !now.After(one.until) {
			kept = append(kept, one)
		} else {
			one.until = time.Time{}
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}
