// Package topicstate contains the state of each key of a topic: the last event of the key, with which
// matching compares the next one. Package match reads and changes states in rounds.
//
// # State
//
// All states are in memory. A state is put here after the transaction that stores it with its
// event, and a start reads all states from the store. Matching sees the states through a [Round]:
// the committed states, and on top of them the events of the round, which are not committed yet.
//
// # Failure
//
// Rounds run concurrently, and one may commit states that another has read. Therefore, only one
// round commits at a time. It first determines which of its keys another round has changed since,
// and matches their events again. If a commit fails with an unknown result, its keys are uncertain:
// no other
// round commits before they have been read from the store.
//
// # Limits
//
// A topic has at most [MaxKeys] keys and [MaxBytes] of data. Events of further keys have no state
// and no crossings; they are counted.
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
	MaxBytes = 512 << 20 // of data and keys
)

// States contains the states of all topics. It is safe for concurrent use.
type States struct {
	committing sync.Mutex // held by the round that commits

	mu        sync.RWMutex
	topics    map[uint32]*topic
	uncertain []Uncertain
}

// A topic contains the states of the current series of a topic.
type topic struct {
	series uint32
	last   map[string]*fanfare.Last
	bytes  int
	full   int64 // events without a state
}

// Uncertain is keys that a failed commit may have changed, in the tables of a day.
type Uncertain struct {
	Day  fanfare.Day
	Keys []fanfare.KeyRef
}

// New returns States without states.
func New() *States { return &States{topics: map[uint32]*topic{}} }

// topicOf returns the topic of a key; nil if it has another series. The caller holds mu.
func (s *States) topicOf(k fanfare.KeyRef) *topic {
	if t := s.topics[k.Topic]; t != nil && t.series == k.Series {
		return t
	}
	return nil
}

// Get returns the state of a key.
func (s *States) Get(k fanfare.KeyRef) (last fanfare.Last, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.topicOf(k); t != nil && t.last[k.Key] != nil {
		return *t.last[k.Key], true
	}
	return fanfare.Last{}, false
}

// Put puts a committed state, unless a later state or a later series is known.
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
	if !t.fits(l) {
		t.full++
		t.drop(known)
		return
	}
	t.drop(known)
	t.last[l.Of.Key] = l
	t.bytes += size(l)
}

func size(l *fanfare.Last) int { return len(l.Of.Key) + len(l.Data) }

// fits reports whether a state fits, in place of the former state of its key.
func (t *topic) fits(l *fanfare.Last) bool {
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

// Size is the size of the states of a topic.
type Size struct {
	Keys  int
	Bytes int
	Full  int64 // events since the start without a state, because the topic is full
}

// Size returns the size of the states of a series.
func (s *States) Size(number, series uint32) Size {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.topicOf(fanfare.KeyRef{Topic: number, Series: series}); t != nil {
		return Size{len(t.last), t.bytes, t.full}
	}
	return Size{}
}

// Total returns the size of all states.
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

// List returns the first states after a key, in the order of keys, limit at most.
func (s *States) List(number, series uint32, behind string, limit int) []fanfare.Last {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topicOf(fanfare.KeyRef{Topic: number, Series: series})
	if t == nil {
		return nil
	}
	var list []*fanfare.Last
	end := "" // the largest key that may be in the result; "": any
	byKey := func(a, b *fanfare.Last) int { return cmp.Compare(a.Of.Key, b.Of.Key) }
	for key, l := range t.last {
		if key <= behind && behind != "" || key > end && end != "" {
			continue
		}
		if list = append(list, l); len(list) >= 4*limit { // sorting sometimes costs less than sorting everything
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

// Retain drops the states of all series but the current ones, which are given by topic number. No
// state is put while current runs, so that it includes the series of every state.
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
