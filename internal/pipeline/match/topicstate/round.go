package topicstate

import (
	"slices"

	"fanfare.dev/fanfare"
)

// A Round is events that are matched one after the other and kept together. It is
// for one goroutine.
type Round struct {
	states *States
	seen   map[fanfare.KeyRef]*seen
}

// seen is what a round has looked at.
type seen struct {
	base  fanfare.EventSeq // the last event at the first look; 0: none
	last  fanfare.Last     // with the events of the round
	known bool
}

// Round begins one.
func (s *States) Round() *Round { return &Round{states: s, seen: map[fanfare.KeyRef]*seen{}} }

// Last returns the last event of a key, as the round sees it.
func (r *Round) Last(k fanfare.KeyRef) (last fanfare.Last, known bool) {
	s := r.look(k)
	return s.last, s.known
}

// Advance makes an event the last of its key.
func (r *Round) Advance(l *fanfare.Last) {
	s := r.look(l.Of)
	s.last, s.known = *l, true
}

func (r *Round) look(k fanfare.KeyRef) *seen {
	s := r.seen[k]
	if s == nil {
		s = &seen{}
		if s.last, s.known = r.states.Get(k); s.known {
			s.base = s.last.Event.Seq
		}
		r.seen[k] = s
	}
	return s
}

// Keep calls keep, which keeps the events of the round and puts their states, while
// no other round is kept. Before it, it reads back what is in doubt, and hands to
// again the keys of the round that have moved since it looked at them, which it
// has forgotten: again has the events of these take their places anew.
//
// Where keep fails, the caller may say which keys are in doubt (Doubt), before it
// returns.
func (r *Round) Keep(readBack func([]Doubt) error, again func(moved []fanfare.KeyRef) error, keep func() error) error {
	if len(r.seen) == 0 {
		return keep()
	}
	s := r.states
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if len(s.doubts) > 0 {
		if err := readBack(s.doubts); err != nil {
			return err
		}
		s.doubts = nil
	}
	if moved := r.moved(); len(moved) > 0 {
		if err := again(moved); err != nil {
			return err
		}
	}
	return keep()
}

func (r *Round) moved() (keys []fanfare.KeyRef) {
	for k, s := range r.seen {
		if now, _ := r.states.Get(k); now.Event.Seq != s.base {
			keys = append(keys, k)
			delete(r.seen, k)
		}
	}
	return slices.Clip(keys)
}

// Doubt notes that it is not known whether events of a day were kept. Only while
// Keep runs.
func (r *Round) Doubt(of fanfare.Day, keys []fanfare.KeyRef) {
	r.states.doubts = append(r.states.doubts, Doubt{of, keys})
}
