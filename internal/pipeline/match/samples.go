package match

import (
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

const (
	// maxSamples is the number of events that are retained for each topic. After these, one of
	// sampleInterval events replaces the oldest.
	maxSamples     = 100
	sampleInterval = 100
	// maxSampleBytes is the maximum size of a retained event.
	maxSampleBytes = 8 << 10
)

// Samples retains some events of each topic in memory, so that a report can estimate how often
// a condition is true. It is safe for concurrent use.
type Samples struct {
	mu     sync.Mutex
	topics map[condition.Key]*topicSamples
}

type topicSamples struct {
	total  int64
	events []condition.Event
	next   int // index of the oldest
}

// NewSamples returns Samples without events.
func NewSamples() *Samples { return &Samples{topics: map[condition.Key]*topicSamples{}} }

// Add counts an event, and keeps it if it is small enough and its turn.
func (s *Samples) Add(key condition.Key, event *fanfare.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[key]
	if t == nil {
		t = &topicSamples{}
		s.topics[key] = t
	}
	t.total++
	switch {
	case sampleSize(event) > maxSampleBytes:
	case len(t.events) < maxSamples:
		t.events = append(t.events, condition.EventOf(event))
	case t.total%sampleInterval == 0:
		t.events[t.next] = condition.EventOf(event)
		t.next = (t.next + 1) % maxSamples
	}
}

func sampleSize(e *fanfare.Event) int {
	size := len(e.Data)
	for name, value := range e.Extensions {
		size += len(name) + len(value)
	}
	return size
}

// Of returns the number of events of a topic since the start, and some of them.
func (s *Samples) Of(key condition.Key) (total int64, events []condition.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[key]; t != nil {
		return t.total, slices.Clone(t.events)
	}
	return 0, nil
}
