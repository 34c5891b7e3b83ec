package crash

import "time"

// A Change is one write of a subscription through the API.
type Change struct {
	Sent, Acked time.Time // before the first request, and after the good answer
	Wants       bool      // the subscription wants the events from then on
	Ended       bool      // it was ended, and is put again by the next change, if any
}

// A Timeline is all changes of one subscription, one after the other.
type Timeline []Change

// during reports whether the subscription certainly matches, and whether it may match, an event that was published between
// two moments.
func (t Timeline) during(from, to time.Time) (must, may bool) {
	for _, c := range t {
		switch {
		case c.Acked.Before(from):
			must, may = c.Wants, c.Wants
		case c.Sent.Before(to):
			must = must && c.Wants
			may = may || c.Wants
		}
	}
	return must, may
}

// over reports whether the subscription was certainly ended at a moment: an end
// was acknowledged before it, and nothing sent since then.
func (t Timeline) over(at time.Time) bool {
	over := false
	for _, c := range t {
		switch {
		case c.Acked.Before(at):
			over = c.Ended
		case c.Sent.Before(at):
			over = over && c.Ended
		}
	}
	return over
}

// A Person has all subscriptions of one topic that belong to one address.
type Person []Timeline

func (p Person) during(from, to time.Time) (must, may bool) {
	for _, t := range p {
		one, other := t.during(from, to)
		must, may = must || one, may || other
	}
	return must, may
}

func (p Person) over(at time.Time) bool {
	for _, t := range p {
		if !t.over(at) {
			return false
		}
	}
	return len(p) > 0
}

// An Audience has the subscribers of a topic, by address.
type Audience map[string]Person

// An Event is one that was acknowledged.
type Event struct {
	ID       string // public id
	Sent     time.Time
	Settled  time.Time // it was seen to be completed
	Audience Audience
}
