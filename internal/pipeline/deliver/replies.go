package deliver

import (
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Replies reads answers: what an answer is about, and what it means for the
// destination beside this one message. It must be quick, and safe for concurrent
// use.
type Replies interface {
	// Read sets the Class of an outcome that has none, and its RetryAfter where
	// the text says one; a rule may also change its Verdict. The destination is
	// that of the message: a domain, or host:port.
	Read(destination string, outcome *driver.Outcome) Advice
}

// Advice is what an answer means for its destination. The zero Advice says
// nothing.
type Advice struct {
	Suspend time.Duration // send it nothing for so long
	Slow    bool          // send it less
}

// classify reads an answer before anything else looks at it. What was taken
// needs no reading.
func (s *Sender) classify(outcome *driver.Outcome, destination string) Advice {
	if outcome.Verdict == driver.Accepted || s.options.Replies == nil {
		return Advice{}
	}
	read := *outcome // so that only an outcome that is read has to lie on the heap
	advice := s.options.Replies.Read(destination, &read)
	*outcome = read
	return advice
}
