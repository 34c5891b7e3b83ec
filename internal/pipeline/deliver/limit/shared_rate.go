package limit

import (
	"sync"
	"time"
)

const (
	// maxLead is how far a share may be ahead of another one that waits, as the time in which
	// the rate allows that many messages; at least one message.
	maxLead = 20 * time.Millisecond
	// lateness is how long a share is still expected after its wait. It may have nothing left
	// to send.
	lateness = 20 * time.Millisecond
)

// A SharedRate is a rate that several users share, each through a Share. If only one share
// sends, it gets the whole rate. Among the shares that wait, none gets ahead of another by more
// than maxLead. It is safe for concurrent use.
type SharedRate struct {
	mu      sync.Mutex
	rate    Rate
	waiting []*Share
	spent   float64 // of the share that is furthest behind; a new share starts with it
}

// A Share is one user of a SharedRate.
type Share struct {
	shared        *SharedRate
	spent         float64   // messages that it was given
	expectedUntil time.Time // the end of its wait; zero: it does not wait
}

// NewShare returns another share.
func (s *SharedRate) NewShare() *Share { return &Share{shared: s} }

// Set changes the rate; see Rate.Set. Shares that wait may ask again at once.
func (s *SharedRate) Set(perSecond float64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate.Set(perSecond, now)
	for _, one := range s.waiting {
		one.expectedUntil = time.Time{}
	}
	s.waiting = nil
}

// GroupSize returns the size of the next group; see Rate.GroupSize.
func (s *Share) GroupSize(most int) int {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.rate.GroupSize(most)
}

// Take counts n messages that are sent together now, or returns how long this share must wait.
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

// Refund takes back n messages that were counted and not sent.
func (s *Share) Refund(_ time.Time, n int) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if s.shared.rate.Limited() {
		s.shared.rate.RefundFor(n)
	}
}

// CountsAtSend reports whether there is a limit: then messages are counted when they are
// sent, not in advance.
func (s *Share) CountsAtSend() bool {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.rate.Limited()
}

// forget drops shares whose wait is over and that did not ask again.
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
