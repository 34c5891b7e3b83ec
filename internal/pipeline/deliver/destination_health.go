package deliver

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// DestinationState says what is the matter with a destination.
type DestinationState string

// The states of destinations that are not well, the worst first.
const (
	DestinationSuspended DestinationState = "suspended" // left alone, or probed by one message
	DestinationSlow      DestinationState = "slow"      // takes much longer than others
	DestinationLimited   DestinationState = "limited"   // a rate was found, or fewer may be under way
)

// DestinationStates lists them.
var DestinationStates = [...]DestinationState{DestinationSuspended, DestinationSlow, DestinationLimited}

// DestinationStatus is how a destination is doing.
type DestinationStatus struct {
	Name      string
	State     DestinationState
	Until     time.Time // that it is left alone; zero: a probe decides, or it is not
	Failures  int       // in a row
	Rate      float64   // messages a second, as its refusals tell; 0: none was found
	Window    int       // messages that may be under way, where it is fewer than at first
	Active    int
	Throttled int // messages that wait for it in memory
	Text      string
	TextAt    time.Time // when it last answered that it wants less, with Text
}

// state is the worst that is the matter with a destination, "" if nothing is.
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

// updateHealth keeps the list of those that are not well.
func (s *destinations) updateHealth(d *destination) {
	if unwell := d.state(s.firstWindow) != ""; unwell != d.impaired {
		if d.impaired = unwell; !unwell {
			delete(s.impaired, d)
			return
		}
		if s.impaired == nil {
			s.impaired = map[*destination]struct{}{}
		}
		s.impaired[d] = struct{}{}
	}
}

// ImpairedDestinations lists the destinations that are not well, by name.
func (o *Sender) ImpairedDestinations() []DestinationStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, of := o.options.Clock.Now(), &o.limits.destinations
	all := make([]DestinationStatus, 0, len(of.impaired))
	for d := range of.impaired {
		s := DestinationStatus{
			Name: d.name, State: d.state(of.firstWindow), Failures: d.breaker.Failures(), Rate: d.learned.PerSecond(),
			Active: d.active, Throttled: d.throttled.len() + d.readmitted, Text: d.lastText, TextAt: d.lastAt,
		}
		s.Until, _ = d.breaker.Open(now)
		if d.window.NarrowedBelow(of.firstWindow) {
			s.Window = d.window.Size()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b DestinationStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// CountImpaired counts the destinations that are not well.
func (o *Sender) CountImpaired() map[DestinationState]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[DestinationState]int{}
	for d := range o.limits.destinations.impaired {
		counts[d.state(o.limits.destinations.firstWindow)]++
	}
	return counts
}

// ResumeDestination has what waits for a destination leave: it is not left alone
// any more, and what its refusals have taught of its rate and of how much may be
// under way is forgotten. That it is slow, and how long it was left alone the last
// time, is not. It returns when all that was put off until then is kept as that,
// and reports whether the destination is known.
func (o *Sender) ResumeDestination(ctx context.Context, name string) (known bool, err error) {
	o.mu.Lock()
	d := o.limits.destinations.known[name]
	if d != nil {
		now := o.options.Clock.Now()
		o.limits.resume(d, now)
		o.requeue(o.limits.takeReady(d, now, nil))
		o.requeue(o.limits.takeDue(now))
		o.openConnections()
		o.unblock()
		o.setTimer(now)
	}
	keeping := slices.Clone(o.recording)
	o.mu.Unlock()
	for _, kept := range keeping {
		select {
		case <-kept:
		case <-ctx.Done():
			return d != nil, ctx.Err()
		}
	}
	return d != nil, nil
}

// resume forgets what the answers of a destination asked for.
func (l *limits) resume(d *destination, now time.Time) {
	for job := l.activeByAge.first; job != nil; job = job.newer {
		if job.dest == d {
			job.probe = false // its answer decides nothing any more
		}
	}
	of := &l.destinations
	own := of.settings.of(d.name)
	d.breaker.Reset(now)
	d.learned, d.window = limit.LearnedRate{}, limit.NewWindow(of.firstWindow, own.Connections)
	d.bookedUntil = time.Time{}
	of.updateHealth(d)
}
