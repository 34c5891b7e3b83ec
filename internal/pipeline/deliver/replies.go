package deliver

import (
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Replies interprets the replies of next hops. It must be fast, and safe for concurrent
// use.
type Replies interface {
	// Read sets the Class of an outcome that has none, and its RetryAfter if the text
	// states one; a rule may also change its Verdict. destination is Job.Destination.
	Read(destination string, outcome *driver.Outcome) Advice
}

// Advice is what a reply asks for its destination. The zero Advice asks for nothing.
type Advice struct {
	Suspend time.Duration // send nothing for this time
	Slow    bool          // send less
}

// classify interprets an outcome that is not Accepted, before anything else uses it.
func (s *Sender) classify(outcome *driver.Outcome, destination string) Advice {
	if outcome.Verdict == driver.Accepted || s.options.Replies == nil {
		return Advice{}
	}
	read := *outcome // a copy, so that only outcomes that are read escape to the heap
	advice := s.options.Replies.Read(destination, &read)
	*outcome = read
	return advice
}
