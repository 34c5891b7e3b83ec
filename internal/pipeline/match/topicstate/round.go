package topicstate

import (
	"slices"

	"fanfare.dev/fanfare"
)

// A Round is a sequence of events that are matched one after another and committed together. It belongs to one
// goroutine.
type Round struct {
	states *States
	views  map[fanfare.KeyRef]*view
}

// A view is a key as a round sees it.
type view struct {
	base  fanfare.EventSeq // the committed event at the first read; 0: none
	last  fanfare.Last     // with the events of the round
	known bool
}

// Round begins a round.
func (s *States) Round() *Round { return &Round{states: s, views: map[fanfare.KeyRef]*view{}} }

// Last returns the last event of a key, as the round sees it.
func (r *Round) Last(k fanfare.KeyRef) (last fanfare.Last, known bool) {
	v := r.view(k)
	return v.last, v.known
}

// Advance makes an event the last of its key.
func (r *Round) Advance(l *fanfare.Last) {
	v := r.view(l.Of)
	v.last, v.known = *l, true
}

func (r *Round) view(k fanfare.KeyRef) *view {
	v := r.views[k]
	if v == nil {
		v = &view{}
		if v.last, v.known = r.states.Get(k); v.known {
			v.base = v.last.Event.Seq
		}
		r.views[k] = v
	}
	return v
}

// Commit calls commit, which commits the events of the round and puts their states, while no other
// round commits. Before that it calls readBack with uncertain keys, and rematch with the keys of the
// round that another round has changed since. The round has forgotten these, and rematch matches
// their events again.
//
// If commit fails with an unknown result, it calls MarkUncertain.
func (r *Round) Commit(readBack func([]Uncertain) error, rematch func(changed []fanfare.KeyRef) error, commit func() error) error {
	if len(r.views) == 0 {
		return commit()
	}
	s := r.states
	s.committing.Lock()
	defer s.committing.Unlock()
	if len(s.uncertain) > 0 {
		if err := readBack(s.uncertain); err != nil {
			return err
		}
		s.uncertain = nil
	}
	if changed := r.dropChanged(); len(changed) > 0 {
		if err := rematch(changed); err != nil {
			return err
		}
	}
	return commit()
}

// dropChanged forgets the keys that another round has changed since this round read them.
func (r *Round) dropChanged() (keys []fanfare.KeyRef) {
	for k, v := range r.views {
		if now, _ := r.states.Get(k); now.Event.Seq != v.base {
			keys = append(keys, k)
			delete(r.views, k)
		}
	}
	return slices.Clip(keys)
}

// MarkUncertain records that it is unknown whether a commit has changed keys. The commit function of Commit
// calls it.
func (r *Round) MarkUncertain(day fanfare.Day, keys []fanfare.KeyRef) {
	r.states.uncertain = append(r.states.uncertain, Uncertain{day, keys})
}
