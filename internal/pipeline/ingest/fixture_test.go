package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

// appended is a group in the log.
type appended struct {
	seq    uint64
	lane   fanfare.Lane
	at     time.Time
	group  []byte
	events []*fanfare.AcceptedEvent
}

// memoryLog is a log in memory that can block and fail, before or after it stores a group.
type memoryLog struct {
	mu       sync.Mutex
	next     uint64
	groups   []appended
	fail     error         // of each append
	failKept bool          // the failing append has stored the group
	failRead error         // of a replay
	hold     chan struct{} // blocks appends
}

func (l *memoryLog) AppendEvents(_ context.Context, lane fanfare.Lane, group []byte) (uint64, error) {
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil && !l.failKept {
		return 0, l.fail
	}
	l.next++
	events, err := eventgroup.Decode(group, l.next)
	if err != nil {
		return 0, err
	}
	l.groups = append(l.groups, appended{l.next, lane, time.Now(), bytes.Clone(group), events})
	return l.next, l.fail
}

func (l *memoryLog) ReplayEvents(_ context.Context, since time.Time, visit func(uint64, time.Time, []byte) error) error {
	l.mu.Lock()
	groups, err := slices.Clone(l.groups), l.failRead
	l.mu.Unlock()
	for _, g := range groups {
		if err == nil && !g.at.Before(since) {
			err = visit(g.seq, g.at, g.group)
		}
	}
	return err
}

func (l *memoryLog) set(change func(*memoryLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *memoryLog) kept() []appended {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.groups)
}

// fixed has topics that accept JSON objects.
type fixed struct{}

func (fixed) CheckAudience(_, filter string) error {
	if filter == "wrong" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/audience_filter"}
	}
	return nil
}

func (fixed) Intake(_, topic string) (fanfare.Lane, func(json.RawMessage) error, error) {
	switch topic {
	case "story":
		return fanfare.Normal, nil, nil
	case "strict":
		return fanfare.Bulk, func(json.RawMessage) error {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data/title", Message: "is missing"}
		}, nil
	}
	return 0, nil, &fanfare.Error{Code: fanfare.NotFound, Message: "no such topic"}
}

func (fixed) ChangeSeq() uint64 { return 77 }

// clock is set by the test.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func newClock() *testClock { return &testClock{now: time.Now().UTC()} }

func noFloor() error { return nil }

func event(id string) fanfare.AcceptedEvent {
	return fanfare.AcceptedEvent{Service: "news", Topic: "story", Lane: fanfare.TopicLane, Event: fanfare.Event{ID: id, Source: "/test", Data: json.RawMessage(`{"a":1}`)}}
}

func events(ids ...string) []fanfare.AcceptedEvent {
	list := make([]fanfare.AcceptedEvent, len(ids))
	for i, id := range ids {
		list[i] = event(id)
	}
	return list
}

// bubble runs a test with an Ingester on a log in memory, in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T, c *Ingester, log *memoryLog, clock *testClock)) {
	synctest.Test(t, func(t *testing.T) {
		log, clock := &memoryLog{}, newClock()
		c := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
		defer c.Stop()
		test(t, c, log, clock)
	})
}

// post posts events and fails the test if none was accepted.
func post(t *testing.T, c *Ingester, list ...fanfare.AcceptedEvent) []Result {
	t.Helper()
	results, err := c.Post(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return results
}
