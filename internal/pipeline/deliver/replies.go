package deliver

import (
	"time"

	"fanfare.dev/fanfare"
)

// Replies reads answers: what an answer is about, and what it means for the
// destination beside this one letter. It must be quick, and safe for concurrent
// use.
type Replies interface {
	// Read sets the Class of an outcome that has none, and its RetryAfter where
	// the text says one; a rule may also change its Verdict. The destination is
	// that of the letter: a domain, or host:port.
	Read(destination string, outcome *fanfare.Outcome) Advice
}

// Advice is what an answer means for its destination. The zero Advice says
// nothing.
type Advice struct {
	Suspend time.Duration // send it nothing for so long
	Slow    bool          // send it less
}

// classify reads an answer before anything else looks at it. What was taken
// needs no reading.
func (o *Outlet) classify(outcome *fanfare.Outcome, destination string) Advice {
	if outcome.Verdict == fanfare.Taken || o.options.Replies == nil {
		return Advice{}
	}
	read := *outcome // so that only an outcome that is read has to lie on the heap
	advice := o.options.Replies.Read(destination, &read)
	*outcome = read
	return advice
}
