package deliver

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// DestinationState is the reason why a destination is impaired.
type DestinationState string

// The states of impaired destinations, the worst first.
const (
	DestinationSuspended DestinationState = "suspended" // nothing is sent, or one message probes it
	DestinationSlow      DestinationState = "slow"      // takes much longer than others
	DestinationLimited   DestinationState = "limited"   // has a learned rate, or a smaller window
)

// DestinationStates lists them.
var DestinationStates = [...]DestinationState{DestinationSuspended, DestinationSlow, DestinationLimited}

// DestinationStatus describes an impaired destination.
type DestinationStatus struct {
	Name      string
	State     DestinationState
	Until     time.Time // end of the suspension; zero: a probe decides, or it is not suspended
	Failures  int       // in a row
	Rate      float64   // learned, in messages per second; 0: none
	Window    int       // messages that may be active, if fewer than at first; 0 otherwise
	Active    int
	Throttled int // messages that wait for it in memory
	Text      string
	TextAt    time.Time // when it last asked, with Text, for fewer messages
}

// state returns the worst state of a destination, or "" if it is not impaired.
func (d *destination) state(first int) DestinationState {
	switch {
	case d.breaker.Tripped():
		return DestinationSuspended
	case d.slow:
		return DestinationSlow
	case d.learned.PerSecond() > 0 || d.window.NarrowedBelow(first):
		return DestinationLimited
	}
	return ""
}

// updateHealth updates the set of impaired destinations.
func (s *destinations) updateHealth(d *destination) {
	if impaired := d.state(s.firstWindow) != ""; impaired != d.impaired {
		if d.impaired = impaired; !impaired {
			delete(s.impaired, d)
			return
		}
		if s.impaired == nil {
			s.impaired = map[*destination]struct{}{}
		}
		s.impaired[d] = struct{}{}
	}
}

// ImpairedDestinations lists the impaired destinations by name.
func (s *Sender) ImpairedDestinations() []DestinationStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, of := s.options.Clock.Now(), &s.limits.destinations
	all := make([]DestinationStatus, 0, len(of.impaired))
	for d := range of.impaired {
		status := DestinationStatus{
			Name: d.name, State: d.state(of.firstWindow), Failures: d.breaker.Failures(), Rate: d.learned.PerSecond(),
			Active: d.active, Throttled: d.throttled.len() + d.readmitted, Text: d.lastText, TextAt: d.lastAt,
		}
		status.Until, _ = d.breaker.Open(now)
		if d.window.NarrowedBelow(of.firstWindow) {
			status.Window = d.window.Size()
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b DestinationStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// CountImpaired counts the impaired destinations by state.
func (s *Sender) CountImpaired() map[DestinationState]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[DestinationState]int{}
	for d := range s.limits.destinations.impaired {
		counts[d.state(s.limits.destinations.firstWindow)]++
	}
	return counts
}

// ResumeDestination ends the suspension of a destination, discards the rate and the window
// learned from its refusals, and sends the messages that wait for it. It keeps whether the
// destination
// is slow, and the length of the last suspension. It returns when everything that was
// postponed so far is recorded, and reports whether the destination is known.
func (s *Sender) ResumeDestination(ctx context.Context, name string) (known bool, err error) {
	s.mu.Lock()
	d := s.limits.destinations.known[name]
	if d != nil {
		now := s.options.Clock.Now()
		s.limits.resume(d, now)
		s.requeue(s.limits.takeReady(d, now, nil))
		s.requeue(s.limits.takeDue(now))
		s.openConnections()
		s.unblock()
		s.setTimer(now)
	}
	recording := slices.Clone(s.recording)
	s.mu.Unlock()
	for _, recorded := range recording {
		select {
		case <-recorded:
		case <-ctx.Done():
			return d != nil, ctx.Err()
		}
	}
	return d != nil, nil
}

// resume forgets what the replies of a destination asked for.
func (l *limits) resume(d *destination, now time.Time) {
	for job := l.activeByAge.first; job != nil; job = job.newer {
		if job.dest == d {
			job.probe = false // its reply no longer decides anything
		}
	}
	of := &l.destinations
	own := of.settings.of(d.name)
	d.breaker.Reset(now)
	d.learned, d.window = limit.LearnedRate{}, limit.NewWindow(of.firstWindow, own.Connections)
	d.bookedUntil = time.Time{}
	of.updateHealth(d)
}
