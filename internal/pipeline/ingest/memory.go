package ingest

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare"
)

// identity is a 128-bit hash of (service, source, id): among ten million ids
// the chance that two share one is below 10^-24.
type identity = xxh3.Uint128

func identify(p *fanfare.AcceptedEvent) identity {
	h := xxh3.New()
	for _, s := range [...]string{p.Service, "\x00", p.Event.Source, "\x00", p.Event.ID} {
		if _, err := h.WriteString(s); err != nil {
			panic(err) // a hash in memory does not fail
		}
	}
	if p.Direct != nil { // whatever the id of an event of a topic, it is not a message's
		if _, err := h.WriteString("\x00direct"); err != nil {
			panic(err)
		}
	}
	if fanfare.ReservedTopic(p.Topic) { // nor is it one of Fanfare's own
		if _, err := h.WriteString("\x00reserved"); err != nil {
			panic(err)
		}
	}
	return h.Sum128()
}

const (
	// Horizon is for how long an id is remembered at least, unless more than
	// maxKnown came since.
	Horizon  = time.Hour
	maxKnown = 10_000_000
)

// memory knows the ids of two generations. The older one is forgotten when the
// younger is full or an hour old, so that an id is known for the last hour, or
// the last ten million, at least.
type memory struct {
	mu           sync.Mutex
	young, old   map[identity]fanfare.EventRef
	youngSince   time.Time
	maxYoungSize int
}

func newMemory() *memory {
	return &memory{young: map[identity]fanfare.EventRef{}, maxYoungSize: maxKnown}
}

func (m *memory) find(id identity) (fanfare.EventRef, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref, ok := m.young[id]
	if !ok {
		ref, ok = m.old[id]
	}
	return ref, ok
}

func (m *memory) learn(id identity, ref fanfare.EventRef, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.youngSince.IsZero() {
		m.youngSince = at
	}
	if len(m.young) >= m.maxYoungSize || at.Sub(m.youngSince) > Horizon {
		m.old, m.young, m.youngSince = m.young, map[identity]fanfare.EventRef{}, at
	}
	m.young[id] = ref
}

// Known returns the event that has the service, source and id of p, and is of
// its kind, if there was one within the horizon.
func (c *Collector) Known(p *fanfare.AcceptedEvent) (fanfare.EventRef, bool) {
	return c.known.find(identify(p))
}

// Remember learns the ids of a group that was kept before this start.
func (c *Collector) Remember(events []*fanfare.AcceptedEvent) {
	for _, p := range events {
		c.known.learn(identify(p), p.Ref(), p.ReceivedAt)
	}
}
