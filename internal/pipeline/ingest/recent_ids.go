package ingest

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare"
)

// identity is a 128-bit hash of (service, source, id). The probability that two of ten million ids
// share a hash is below 10^-24.
type identity = xxh3.Uint128

func identify(p *fanfare.AcceptedEvent) identity {
	h := xxh3.New()
	for _, s := range [...]string{p.Service, "\x00", p.Event.Source, "\x00", p.Event.ID} {
		if _, err := h.WriteString(s); err != nil {
			panic(err) // cannot fail in memory
		}
	}
	if p.Direct != nil { // messages have their own ids
		if _, err := h.WriteString("\x00direct"); err != nil {
			panic(err)
		}
	}
	if fanfare.ReservedTopic(p.Topic) { // as do Fanfare's own events
		if _, err := h.WriteString("\x00reserved"); err != nil {
			panic(err)
		}
	}
	return h.Sum128()
}

const (
	// Horizon is how long an id is remembered at least, unless more than maxKnown events
	// arrive in that time.
	Horizon  = time.Hour
	maxKnown = 10_000_000
)

// recentIDs contains the ids of two generations. When the current one is full or an hour old, it
// replaces the previous one. Therefore, at least the ids of the last hour, or the last ten million,
// are known.
type recentIDs struct {
	mu                sync.Mutex
	current, previous map[identity]fanfare.EventRef
	since             time.Time
	maxSize           int
}

func newRecentIDs() *recentIDs {
	return &recentIDs{current: map[identity]fanfare.EventRef{}, maxSize: maxKnown}
}

func (m *recentIDs) find(id identity) (fanfare.EventRef, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref, ok := m.current[id]
	if !ok {
		ref, ok = m.previous[id]
	}
	return ref, ok
}

// add adds an id, and returns the event that it belongs to: the first one in the order of the log.
func (m *recentIDs) add(id identity, ref fanfare.EventRef, at time.Time) (first fanfare.EventRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ids := range []map[identity]fanfare.EventRef{m.current, m.previous} {
		if known, ok := ids[id]; ok && known.Seq < ref.Seq {
			ref = known
			break
		}
	}
	if m.since.IsZero() {
		m.since = at
	}
	if len(m.current) >= m.maxSize || at.Sub(m.since) > Horizon {
		m.previous, m.current, m.since = m.current, map[identity]fanfare.EventRef{}, at
	}
	m.current[id] = ref
	return ref
}

// Known returns the recent event with the service, source, id and kind of p; false if there is none.
func (in *Ingester) Known(p *fanfare.AcceptedEvent) (fanfare.EventRef, bool) {
	return in.known.find(identify(p))
}

// Repeats reports whether an event from the log has the id of an earlier one. A former leader may have appended it: NATS can store a
// message long after the node that sent it has given up, when another leader has accepted the event again.
func (in *Ingester) Repeats(p *fanfare.AcceptedEvent) bool {
	return in.known.add(identify(p), p.Ref(), p.ReceivedAt) != p.Ref()
}

// LoadIDs adds the ids of a group that was appended before this start.
func (in *Ingester) LoadIDs(events []*fanfare.AcceptedEvent) {
	for _, p := range events {
		in.known.add(identify(p), p.Ref(), p.ReceivedAt)
	}
}
