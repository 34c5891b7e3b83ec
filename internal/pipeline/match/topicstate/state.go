// Package state knows the last event of each key of a topic: what a value was before
// it crossed a level.
//
// State. All of it is in memory, and follows what was kept: a state is put here
// after the transaction that keeps it with its event, and read back from the store
// at start. Who matches events looks at the states as a [Round] sees them: as they
// are here, with the round's own events on top, none of which is kept yet.
//
// Failure. Rounds work beside each other, and what one keeps may be what another has
// looked at. So a round is kept while it alone may keep anything, and is told first
// which of its keys have moved; their events are to be matched again. Where nobody
// knows whether a round was kept, its keys are in doubt: no other round is kept
// before they have been read back.
//
// A topic has at most [MaxKeys] keys and [MaxBytes] of data. An event of a further
// key leaves no state, and so crosses nothing; that is counted.
package topicstate

import (
	"cmp"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
)

// The limits of a topic.
const (
	MaxKeys  = 1_000_000
	MaxBytes = 512 << 20 // of data, and of the texts of keys
)

// States are those of all topics. Its methods are safe for concurrent use.
type States struct {
	keeping sync.Mutex // held by the one who keeps a round

	mu     sync.RWMutex
	topics map[uint32]*topic
	doubts []Doubt
}

// A topic is the series of keys that it has now.
type topic struct {
	series uint32
	last   map[string]*fanfare.Last
	bytes  int
	full   int64 // events that left no state
}

// A Doubt is keys whose states of a day may be others than are known.
type Doubt struct {
	Day  fanfare.Day
	Keys []fanfare.KeyRef
}

// New returns no states.
func New() *States { return &States{topics: map[uint32]*topic{}} }

// of returns the topic of a key, nil if it has none of its series. Under mu.
func (s *States) of(k fanfare.KeyRef) *topic {
	if t := s.topics[k.Topic]; t != nil && t.series == k.Series {
		return t
	}
	return nil
}

// Get returns the last event of a key.
func (s *States) Get(k fanfare.KeyRef) (last fanfare.Last, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.of(k); t != nil && t.last[k.Key] != nil {
		return *t.last[k.Key], true
	}
	return fanfare.Last{}, false
}

// Put takes a state that is kept, unless a later one is known, or a later series.
func (s *States) Put(l *fanfare.Last) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[l.Of.Topic]
	if t == nil || t.series < l.Of.Series {
		t = &topic{series: l.Of.Series, last: map[string]*fanfare.Last{}}
		s.topics[l.Of.Topic] = t
	}
	known := t.last[l.Of.Key]
	if t.series > l.Of.Series || known != nil && known.Event.Seq >= l.Event.Seq {
		return
	}
	if !t.room(l) {
		t.full++
		t.drop(known)
		return
	}
	t.drop(known)
	t.last[l.Of.Key] = l
	t.bytes += size(l)
}

func size(l *fanfare.Last) int { return len(l.Of.Key) + len(l.Data) }

// room reports whether t can have l in place of what it has of its key.
func (t *topic) room(l *fanfare.Last) bool {
	bytes, keys := t.bytes+size(l), len(t.last)+1
	if known := t.last[l.Of.Key]; known != nil {
		bytes, keys = bytes-size(known), keys-1
	}
	return bytes <= MaxBytes && keys <= MaxKeys
}

func (t *topic) drop(l *fanfare.Last) {
	if l != nil {
		delete(t.last, l.Of.Key)
		t.bytes -= size(l)
	}
}

// A Size is how much is known of a topic.
type Size struct {
	Keys  int
	Bytes int
	Full  int64 // events since the start that left no state, because the topic is full
}

// Size tells how much is known of a topic's series.
func (s *States) Size(number, series uint32) Size {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.of(fanfare.KeyRef{Topic: number, Series: series}); t != nil {
		return Size{len(t.last), t.bytes, t.full}
	}
	return Size{}
}

// Total adds up what is known of all topics.
func (s *States) Total() (sum Size) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.topics {
		sum.Keys += len(t.last)
		sum.Bytes += t.bytes
		sum.Full += t.full
	}
	return sum
}

// List returns the first states behind a key, in the order of keys, limit at most.
func (s *States) List(number, series uint32, behind string, limit int) []fanfare.Last {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.of(fanfare.KeyRef{Topic: number, Series: series})
	if t == nil {
		return nil
	}
	var list []*fanfare.Last
	end := "" // the last key that may still be among the first; "": all may
	byKey := func(a, b *fanfare.Last) int { return cmp.Compare(a.Of.Key, b.Of.Key) }
	for key, l := range t.last {
		if key <= behind && behind != "" || key > end && end != "" {
			continue
		}
		if list = append(list, l); len(list) >= 4*limit { // sorting now and then costs less than sorting all
			slices.SortFunc(list, byKey)
			list = list[:limit]
			end = list[limit-1].Of.Key
		}
	}
	slices.SortFunc(list, byKey)
	lasts := make([]fanfare.Last, min(limit, len(list)))
	for i := range lasts {
		lasts[i] = *list[i]
	}
	return lasts
}

// Retain drops all but the series that current tells, by the numbers of topics. It
// is called while no state is put: who puts one of a new series has told it before.
func (s *States) Retain(current func() map[uint32]uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stay := current()
	for number, t := range s.topics {
		if series, ok := stay[number]; !ok || series != t.series {
			delete(s.topics, number)
		}
	}
}
