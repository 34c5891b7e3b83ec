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

// memoryStore stores commits in memory. It can block and refuse.
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

// recorded returns all commits so far.
func (s *memoryStore) recorded() []fanfare.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commits)
}

// times counts how often each attempt of each delivery was recorded.
func (s *memoryStore) times() map[string]int {
	times := map[string]int{}
	for _, c := range s.recorded() {
		for _, e := range c.Entries {
			times[fmt.Sprint(e.Delivery, e.Attempt)]++
		}
	}
	return times
}

func (s *memoryStore) completions() []fanfare.Completion {
	var all []fanfare.Completion
	for _, c := range s.recorded() {
		all = append(all, c.Completions...)
	}
	return all
}

// testClock is the clock of the synctest bubble.
type testClock struct{}

func (testClock) Now() time.Time { return time.Now().UTC() }

// fixture is a recorder and the calls of its options.
type fixture struct {
	*Recorder
	store *memoryStore

	mu        sync.Mutex
	allFailed []fanfare.EventRef
	dues      map[fanfare.Day][]time.Time
}

func inBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{store: &memoryStore{}, dues: map[fanfare.Day][]time.Time{}}
		f.Recorder = Start(Options{
			Store: f.store, Clock: testClock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			OnAllFailed: func(ref fanfare.EventRef) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.allFailed = append(f.allFailed, ref)
			},
			WorkDue: func(day fanfare.Day, at time.Time) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.dues[day] = append(f.dues[day], at)
			},
		})
		defer f.Stop()
		test(t, f)
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

// record records an entry and fails the test if that is refused.
func (f *fixture) record(t *testing.T, ref fanfare.EventRef, position int, attempt uint16, state fanfare.State) {
	t.Helper()
	if err := f.Record(entryOf(ref, position, attempt, state), nil); err != nil {
		t.Error(err)
	}
}

// committing records an entry whose commit lasts until end is called.
func (f *fixture) committing(t *testing.T, callers *sync.WaitGroup) (end func()) {
	t.Helper()
	hold := make(chan struct{})
	f.store.set(func(s *memoryStore) { s.hold = hold })
	callers.Go(func() { f.record(t, event, 0, 1, fanfare.Accepted) })
	synctest.Wait()
	return func() {
		f.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
	}
}
