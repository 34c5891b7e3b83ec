package server

import (
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// samples keeps some of each topic's events in memory, so that a report can tell
// how often a condition is met: the first ones, and then one in sampleEvery, which
// takes the place of the oldest. What is larger than maxSampleBytes is left out.
type samples struct {
	mu     sync.Mutex
	topics map[condition.Key]*sampled
}

type sampled struct {
	events int64 // that were seen
	kept   []condition.Event
	next   int // place of the oldest
}

const (
	maxSamples     = 100
	sampleEvery    = 100
	maxSampleBytes = 8 << 10
)

func newSamples() *samples { return &samples{topics: map[condition.Key]*sampled{}} }

// note counts an event, and may keep it.
func (s *samples) note(key condition.Key, event *fanfare.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.topics[key]
	if of == nil {
		of = &sampled{}
		s.topics[key] = of
	}
	of.events++
	switch {
	case sampleSize(event) > maxSampleBytes:
	case len(of.kept) < maxSamples:
		of.kept = append(of.kept, condition.EventOf(event))
	case of.events%sampleEvery == 0:
		of.kept[of.next] = condition.EventOf(event)
		of.next = (of.next + 1) % maxSamples
	}
}

func sampleSize(e *fanfare.Event) int {
	size := len(e.Data)
	for name, value := range e.Extensions {
		size += len(name) + len(value)
	}
	return size
}

// of returns how many events of a topic there were, and some of them.
func (s *samples) of(key condition.Key) (events int64, some []condition.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.topics[key]; of != nil {
		return of.events, slices.Clone(of.kept)
	}
	return 0, nil
}
