package deliver

import "time"

// Status is how an outlet is doing.
type Status struct {
	Connections int
	Queued      int
	Throttled   int // jobs that wait for their destinations
	RateLimited int // jobs that wait for the rate of their broadcast
	InFlight    int
	Accepted    int64  // messages that the next hop took, since the start
	LastError   string // empty while messages can leave by some relay
	LastErrorAt time.Time
	Relays      []RelayStatus
}

// RelayStatus is how a relay is doing.
type RelayStatus struct {
	Name        string
	State       RelayState
	Weight      int     // as configured
	Share       float64 // of the connections, that it may have now: 0 to 1
	Connections int
	Accepted    int64         // since the start
	Errors      int64         // messages lost or refused for reasons of its own, and connections lost, since the start
	P50, P99    time.Duration // that a message took it, over the last half minute; 0 while it took none
	LastError   string        // empty if there was none
	LastErrorAt time.Time
}

// RelayState says whether messages leave by a relay.
type RelayState string

// The states of a relay.
const (
	RelayUp      RelayState = "up"
	RelayDoubted RelayState = "doubted" // its last connection was lost; nothing more is known
	RelayDown    RelayState = "down"    // one connection at a time tries it, with pauses
	RelayDrained RelayState = "drained" // by an operator
	RelayUnused  RelayState = "unused"  // its weight is 0
)

// Status returns how the outlet is doing.
func (o *Sender) Status() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.options.Clock.Now()
	o.adjustWeights(now)
	s := Status{Connections: o.connections, Queued: o.queued(), Throttled: o.limits.throttledCount(), RateLimited: o.rateLimited.len(), InFlight: len(o.inFlight), Accepted: o.accepted}
	trouble := true
	for _, r := range o.relays {
		status := r.status(now, o.settings.Connections)
		s.Relays = append(s.Relays, status)
		switch status.State {
		case RelayUp:
			trouble = false
		case RelayDoubted, RelayDown:
			s.LastError, s.LastErrorAt = r.lastError, r.lastErrorAt
		}
	}
	if !trouble {
		s.LastError, s.LastErrorAt = "", time.Time{}
	}
	return s
}

func (r *relay) status(now time.Time, seats int) RelayStatus {
	took := r.window.sum(now, windowParts).durations
	return RelayStatus{
		Name: r.Name, State: r.state(), Weight: r.Weight, Share: float64(r.seats) / float64(max(seats, 1)), Connections: r.connections,
		Accepted: r.accepted, Errors: r.errors, P50: took.quantile(0.5), P99: took.quantile(0.99), LastError: r.lastError, LastErrorAt: r.lastErrorAt,
	}
}

func (r *relay) state() RelayState {
	switch {
	case r.Weight == 0:
		return RelayUnused
	case r.Drained:
		return RelayDrained
	case r.down():
		return RelayDown
	case r.failures > 0:
		return RelayDoubted
	}
	return RelayUp
}
