package record

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// memoryStore keeps commits. It can be held up, and can refuse.
type memoryStore struct {
	mu      sync.Mutex
	days    []fanfare.Day
	commits []fanfare.Commit
	tries   int
	refuse  error
	hold    chan struct{}
}

func (s *memoryStore) Commit(_ context.Context, day fanfare.Day, group *fanfare.Commit) error {
	s.mu.Lock()
	hold := s.hold
	s.tries++
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	s.days = append(s.days, day)
	s.commits = append(s.commits, fanfare.Commit{Entries: slices.Clone(group.Entries), Dues: slices.Clone(group.Dues), Completions: slices.Clone(group.Completions)})
	return nil
}

func (s *memoryStore) set(change func(*memoryStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// kept returns all commits so far.
func (s *memoryStore) kept() []fanfare.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commits)
}

// times counts how often each delivery was kept with each attempt.
func (s *memoryStore) times() map[string]int {
	times := map[string]int{}
	for _, c := range s.kept() {
		for _, e := range c.Entries {
			times[fmt.Sprint(e.Delivery, e.Attempt)]++
		}
	}
	return times
}

func (s *memoryStore) completions() []fanfare.Completion {
	var all []fanfare.Completion
	for _, c := range s.kept() {
		all = append(all, c.Completions...)
	}
	return all
}

// clock is the time of the bubble.
type testClock struct{}

func (testClock) Now() time.Time { return time.Now().UTC() }

// bench is a recorder with what it tells.
type bench struct {
	*Recorder
	store *memoryStore

	mu   sync.Mutex
	sour []fanfare.EventRef
	dues map[fanfare.Day][]time.Time
}

func bubble(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{store: &memoryStore{}, dues: map[fanfare.Day][]time.Time{}}
		b.Recorder = Start(Options{
			Store: b.store, Clock: testClock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			OnAllFailed: func(ref fanfare.EventRef) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.sour = append(b.sour, ref)
			},
			WorkDue: func(day fanfare.Day, at time.Time) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.dues[day] = append(b.dues[day], at)
			},
		})
		defer b.Stop()
		test(t, b)
	})
}

var (
	today    = fanfare.Day(20777)
	event    = fanfare.EventRef{Day: today, Seq: fanfare.NewEventSeq(5, 0)}
	tomorrow = fanfare.EventRef{Day: today + 1, Seq: fanfare.NewEventSeq(5, 0)}
)

func entryOf(ref fanfare.EventRef, position int, attempt uint16, state fanfare.State) *fanfare.Entry {
	return &fanfare.Entry{
		Delivery: fanfare.DeliveryRef{Day: ref.Day, Manifest: fanfare.NewManifestID(ref.Seq, position%3), Position: uint32(position)},
		Attempt:  attempt, State: state, At: time.Now(),
	}
}

// record records and fails the test where that is refused.
func (b *bench) record(t *testing.T, ref fanfare.EventRef, position int, attempt uint16, state fanfare.State) {
	t.Helper()
	if err := b.Record(entryOf(ref, position, attempt, state), nil); err != nil {
		t.Error(err)
	}
}

// committing records an entry whose commit is under way until end.
func (b *bench) committing(t *testing.T, callers *sync.WaitGroup) (end func()) {
	t.Helper()
	hold := make(chan struct{})
	b.store.set(func(s *memoryStore) { s.hold = hold })
	callers.Go(func() { b.record(t, event, 0, 1, fanfare.Accepted) })
	synctest.Wait()
	return func() {
		b.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
	}
}
