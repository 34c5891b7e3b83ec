package deliver

import "time"

// Status describes a sender.
type Status struct {
	Connections int
	Queued      int
	Throttled   int // jobs that wait for their destinations
	RateLimited int // jobs that wait for the rate of their broadcast
	InFlight    int
	Accepted    int64  // by the next hops, since the start
	LastError   string // empty while at least one relay is up
	LastErrorAt time.Time
	Relays      []RelayStatus
}

// RelayStatus describes a relay.
type RelayStatus struct {
	Name        string
	Node        string // whose connections these are; "" for this server
	State       RelayState
	Weight      int     // from the settings
	Share       float64 // of the connections that it may have now, 0 to 1
	Connections int
	Accepted    int64         // since the start
	Errors      int64         // messages lost or refused for reasons of its own, and lost connections, since the start
	P50, P99    time.Duration // duration of a message in the last half minute; 0 if there was none
	LastError   string        // empty if there was none
	LastErrorAt time.Time
}

// RelayState is the state of a relay, which determines whether it gets messages.
type RelayState string

// The states of a relay.
const (
	RelayUp      RelayState = "up"
	RelayDoubted RelayState = "doubted" // its last connection was lost; nothing else is known
	RelayDown    RelayState = "down"    // one connection at a time tries it, with pauses
	RelayDrained RelayState = "drained" // by an operator
	RelayUnused  RelayState = "unused"  // its weight is 0
)

// Status returns the status of the sender.
func (s *Sender) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	s.adjustWeights(now)
	result := Status{Connections: s.connections, Queued: s.queued(), Throttled: s.limits.throttledCount(), RateLimited: s.rateLimited.len(), InFlight: len(s.inFlight), Accepted: s.accepted}
	trouble := true
	for _, r := range s.relays {
		relay := r.status(now, s.settings.Connections)
		result.Relays = append(result.Relays, relay)
		switch relay.State {
		case RelayUp:
			trouble = false
		case RelayDoubted, RelayDown:
			result.LastError, result.LastErrorAt = r.lastError, r.lastErrorAt
		}
	}
	if !trouble {
		result.LastError, result.LastErrorAt = "", time.Time{}
	}
	return result
}

func (r *relay) status(now time.Time, seats int) RelayStatus {
	took := r.window.sum(now, windowParts).durations
	return RelayStatus{
		Name: r.Name, Node: r.Node, State: r.state(), Weight: r.Weight, Share: float64(r.seats) / float64(max(seats, 1)), Connections: r.connections,
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
