package record

import (
	"context"
	"errors"
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
type clock struct{}

func (clock) Now() time.Time { return time.Now().UTC() }

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
			Store: b.store, Clock: clock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Sour: func(ref fanfare.EventRef) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.sour = append(b.sour, ref)
			},
			Due: func(day fanfare.Day, at time.Time) {
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

func TestRecordReturnsWhenItsEntryIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		hold := make(chan struct{})
		b.store.set(func(s *memoryStore) { s.hold = hold })
		returned := make(chan struct{})
		go func() {
			b.record(t, event, 1, 1, fanfare.Accepted)
			if n := len(b.store.kept()); n != 1 {
				t.Errorf("returned with %d commits kept", n)
			}
			close(returned)
		}()
		synctest.Wait()
		select {
		case <-returned:
			t.Fatal("returned before the store did")
		default:
		}
		close(hold)
		<-returned
		got := b.store.kept()[0].Entries[0]
		if want := entryOf(event, 1, 1, fanfare.Accepted); got != *want {
			t.Errorf("kept %+v, want %+v", got, *want)
		}
		totals, groups := b.Totals()
		if totals[fanfare.Accepted] != 1 || totals.Total() != 1 || groups != 1 {
			t.Errorf("totals %v in %d groups", totals, groups)
		}
	})
}

func TestEntriesGatherWhileACommitIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		hold := make(chan struct{})
		b.store.set(func(s *memoryStore) { s.hold = hold })
		var callers sync.WaitGroup
		callers.Go(func() { b.record(t, event, 0, 1, fanfare.Accepted) })
		synctest.Wait()
		for i := range maxGroup + 100 {
			callers.Go(func() { b.record(t, event, i+1, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		b.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
		callers.Wait()
		var sizes []int
		for _, c := range b.store.kept() {
			sizes = append(sizes, len(c.Entries))
		}
		if want := []int{1, maxGroup, 100}; !slices.Equal(sizes, want) {
			t.Errorf("groups of %v, want %v", sizes, want)
		}
	})
}

// TestAGroupStaysOpenForWhatIsOnTheWireAndNoLonger is what makes one sync serve
// all connections.
func TestAGroupStaysOpenForWhatIsOnTheWireAndNoLonger(t *testing.T) {
	for _, c := range []struct {
		name    string
		expect  int
		answers []time.Duration // after the first
		groups  []int
		took    time.Duration // of the first
	}{
		{"alone", 1, nil, []int{1}, 0},
		{"all answer soon", 4, []time.Duration{0, 100 * time.Microsecond, 300 * time.Microsecond}, []int{4}, 300 * time.Microsecond},
		{"one never answers", 3, []time.Duration{0}, []int{2}, gatherAtMost},
		{"one is late", 3, []time.Duration{0, time.Second}, []int{2, 1}, gatherAtMost},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				for range c.expect {
					b.Expect()
				}
				var callers sync.WaitGroup
				for i, after := range c.answers {
					callers.Go(func() {
						<-time.After(after)
						if err := b.RecordExpected(entryOf(event, i+1, 1, fanfare.Accepted), nil); err != nil {
							t.Error(err)
						}
					})
				}
				start := time.Now()
				if err := b.RecordExpected(entryOf(event, 0, 1, fanfare.Accepted), nil); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("the first waited %v, want %v", took, c.took)
				}
				callers.Wait()
				var sizes []int
				for _, commit := range b.store.kept() {
					sizes = append(sizes, len(commit.Entries))
				}
				if !slices.Equal(sizes, c.groups) {
					t.Errorf("groups of %v, want %v", sizes, c.groups)
				}
			})
		})
	}
}

func TestAStoreThatRefusesKeepsCallersWaitingAndLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 100, fanfare.Progress{})
		b.store.set(func(s *memoryStore) { s.refuse = &fanfare.Error{Code: fanfare.DiskFull, Message: "full"} })
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() { b.record(t, event, i, 1, fanfare.Accepted) })
		}
		<-time.After(time.Minute)
		var tries int
		b.store.set(func(s *memoryStore) { tries = s.tries })
		if tries < 100 || len(b.store.kept()) != 0 {
			t.Errorf("%d tries in a minute, %d kept", tries, len(b.store.kept()))
		}
		if totals, _ := b.Totals(); totals.Total() != 0 {
			t.Errorf("totals %v while nothing is kept", totals)
		}
		b.store.set(func(s *memoryStore) { s.refuse = nil })
		callers.Wait()
		times := b.store.times()
		if len(times) != 100 {
			t.Errorf("%d entries are kept, want 100", len(times))
		}
		for e, n := range times {
			if n != 1 {
				t.Errorf("%s is kept %d times", e, n)
			}
		}
		if done := b.store.completions(); len(done) != 1 || done[0].Progress.Counts[fanfare.Accepted] != 100 {
			t.Errorf("completions %+v", done)
		}
	})
}

func TestADayThatIsGoneHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 1, fanfare.Progress{})
		b.store.set(func(s *memoryStore) { s.refuse = &fanfare.Error{Code: fanfare.NotFound, Message: "no such day"} })
		if err := b.Record(entryOf(event, 1, 1, fanfare.Accepted), nil); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
		b.store.set(func(s *memoryStore) { s.refuse = nil })
		b.record(t, tomorrow, 1, 1, fanfare.Accepted)
		if _, open := b.Progress(event); open {
			t.Error("a broadcast of the day that is gone is still open")
		}
	})
}

func TestAGroupOfSeveralDaysIsKeptDayByDay(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		var entries []fanfare.Entry
		for i := range 30 {
			ref := event
			ref.Day += fanfare.Day(i * 7 % 4)
			entries = append(entries, *entryOf(ref, i, 1, fanfare.Accepted))
		}
		if err := b.RecordAll(entries); err != nil {
			t.Fatal(err)
		}
		if len(b.store.days) != 4 || len(b.store.times()) != 30 {
			t.Errorf("%d commits of %d entries, want 4 of 30", len(b.store.days), len(b.store.times()))
		}
		for i, c := range b.store.kept() {
			for _, e := range c.Entries {
				if e.Delivery.Day != b.store.days[i] {
					t.Errorf("an entry of %v is in a commit of %v", e.Delivery.Day, b.store.days[i])
				}
			}
		}
	})
}

func TestDueWorkIsKeptWithItsEntryAndTheEarliestIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		hold := make(chan struct{})
		b.store.set(func(s *memoryStore) { s.hold = hold })
		var callers sync.WaitGroup
		callers.Go(func() { b.record(t, event, 0, 1, fanfare.Accepted) })
		synctest.Wait()
		start := time.Now()
		for i, after := range []time.Duration{time.Hour, time.Minute, 2 * time.Minute} {
			callers.Go(func() {
				due := &fanfare.Due{At: start.Add(after), Channel: 7, Slice: fanfare.Slice{Manifest: 64, Positions: []uint32{uint32(i)}, Attempt: 2}}
				if err := b.Record(entryOf(event, i+1, 1, fanfare.Deferred), due); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(hold)
		callers.Wait()
		synctest.Wait()
		if dues := b.store.kept()[1].Dues; len(dues) != 3 {
			t.Errorf("kept %v", dues)
		}
		if told := b.dues[today]; len(told) != 1 || !told[0].Equal(start.Add(time.Minute)) {
			t.Errorf("told %v, want one minute after %v", told, start)
		}
	})
}

// TestABroadcastIsCompletedOnceWithTheRightCounts settles 300 deliveries, some
// after retries, from many callers in any order.
func TestABroadcastIsCompletedOnceWithTheRightCounts(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 300, fanfare.Progress{})
		b.Begin(event, 7, fanfare.Progress{}) // changes nothing
		final := []fanfare.State{fanfare.Accepted, fanfare.Failed, fanfare.Expired, fanfare.Cancelled, fanfare.Suppressed, fanfare.Accepted}
		var callers sync.WaitGroup
		for i := range 300 {
			callers.Go(func() {
				attempt := uint16(1)
				for range i % 4 {
					b.record(t, event, i, attempt, fanfare.Deferred)
					attempt++
				}
				if p, open := b.Progress(event); !open || p.Counts.Total() != 300 {
					t.Errorf("under way: %v (%v)", p.Counts, open)
				}
				b.record(t, event, i, attempt, final[i%len(final)])
			})
		}
		callers.Wait()
		done := b.store.completions()
		if len(done) != 1 || done[0].Seq != event.Seq {
			t.Fatalf("%d completions, want 1", len(done))
		}
		p := done[0].Progress
		want := fanfare.Counts{fanfare.Accepted: 100, fanfare.Failed: 50, fanfare.Expired: 50, fanfare.Cancelled: 50, fanfare.Suppressed: 50}
		if p.Counts != want || p.Completed.IsZero() || p.First.IsZero() || p.Last.Before(p.First) || p.Completed.Before(p.Last) {
			t.Errorf("completed with %+v, want %v", p, want)
		}
		last := b.store.kept()[len(b.store.kept())-1]
		if len(last.Completions) != 1 {
			t.Error("the completion is not in the commit of the last outcome")
		}
		if _, open := b.Progress(event); open || len(b.Open(10)) != 0 {
			t.Error("it is still open")
		}
	})
}

func TestABroadcastGoesOnWhereARestartLeftIt(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 5, fanfare.Progress{Counts: fanfare.Counts{fanfare.Accepted: 2, fanfare.Deferred: 1}, First: time.Now().Add(-time.Hour)})
		if p, _ := b.Progress(event); p.Counts[fanfare.Pending] != 2 || p.Counts.Total() != 5 {
			t.Errorf("begun with %v", p.Counts)
		}
		b.record(t, event, 2, 2, fanfare.Accepted) // the deferred one
		b.record(t, event, 3, 1, fanfare.Accepted)
		if len(b.store.completions()) != 0 || !slices.Equal(b.Open(10), []fanfare.EventRef{event}) {
			t.Error("completed too early")
		}
		b.record(t, event, 4, 1, fanfare.Failed)
		done := b.store.completions()
		if len(done) != 1 || done[0].Progress.Counts != (fanfare.Counts{fanfare.Accepted: 4, fanfare.Failed: 1}) || time.Since(done[0].Progress.First) < time.Hour {
			t.Errorf("completions %+v", done)
		}
	})
}

func TestABroadcastThatOnlyFailsIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		others []fanfare.State // before the failures
		failed int
		told   bool
	}{
		{"99 failures", nil, 99, false},
		{"100 failures", nil, 100, true},
		{"many failures", nil, 400, true},
		{"one accepted before", []fanfare.State{fanfare.Accepted}, 400, false},
		{"one unsubscribed before", []fanfare.State{fanfare.Suppressed}, 100, true},
		{"some cancelled, expired and deferred before", []fanfare.State{fanfare.Cancelled, fanfare.Expired, fanfare.Deferred}, 100, true},
		{"all of it failed", nil, 500, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.Begin(event, 500, fanfare.Progress{})
				position := 0
				for _, state := range c.others {
					b.record(t, event, position, 1, state)
					position++
				}
				for range c.failed {
					b.record(t, event, position, 1, fanfare.Failed)
					position++
				}
				synctest.Wait()
				b.mu.Lock()
				defer b.mu.Unlock()
				if told := len(b.sour); told > 1 || (told == 1) != c.told {
					t.Errorf("told %d times, want %v", told, c.told)
				}
			})
		})
	}
}

func TestABroadcastThatIsOverIsNotPaused(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, sourAfter, fanfare.Progress{})
		for i := range sourAfter {
			b.record(t, event, i, 1, fanfare.Failed)
		}
		synctest.Wait()
		if len(b.sour) != 0 || len(b.store.completions()) != 1 {
			t.Errorf("told %v, completed %d times", b.sour, len(b.store.completions()))
		}
	})
}

func TestStopKeepsWhatWaitsAndRefusesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		hold := make(chan struct{})
		b.store.set(func(s *memoryStore) { s.hold = hold })
		b.Expect() // of a connection that never answers
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() { b.record(t, event, i, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { b.Stop(); close(stopped) }()
		synctest.Wait()
		for name, late := range map[string]error{
			"Record":         b.Record(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordExpected": b.RecordExpected(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordAll":      b.RecordAll([]fanfare.Entry{*entryOf(event, 99, 1, fanfare.Accepted)}),
		} {
			if fanfare.CodeOf(late) != fanfare.Unavailable {
				t.Errorf("%s after Stop: %v", name, late)
			}
		}
		select {
		case <-stopped:
			t.Error("stopped before what waited was kept")
		default:
		}
		b.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
		<-stopped
		callers.Wait()
		if n := len(b.store.times()); n != 50 {
			t.Errorf("%d entries are kept, want 50", n)
		}
		b.Stop()
	})
}

func TestStopGivesUpOnAStoreThatRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		refused := errors.New("broken")
		b.store.set(func(s *memoryStore) { s.refuse = refused })
		got := make(chan error, 2)
		go func() { got <- b.Record(entryOf(event, 1, 1, fanfare.Accepted), nil) }()
		synctest.Wait()
		go func() { got <- b.RecordAll([]fanfare.Entry{*entryOf(event, 2, 1, fanfare.Accepted)}) }()
		synctest.Wait()
		b.Stop()
		for range cap(got) {
			if err := <-got; !errors.Is(err, refused) {
				t.Errorf("a caller got %v", err)
			}
		}
	})
}

func TestStopWaitsForWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, store := make(chan struct{}), &memoryStore{}
		r := Start(Options{Store: store, Clock: clock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Sour: func(fanfare.EventRef) { <-hold }})
		r.Begin(event, 500, fanfare.Progress{})
		for i := range sourAfter {
			if err := r.Record(entryOf(event, i, 1, fanfare.Failed), nil); err != nil {
				t.Fatal(err)
			}
		}
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stopped while somebody was being told")
		default:
		}
		close(hold)
		<-stopped
	})
}

func TestTheBacklogIsTheSumOfWhatIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		other := fanfare.EventRef{Day: event.Day, Seq: event.Seq + 1}
		expect := func(when string, broadcasts int, pending, deferred int64) {
			t.Helper()
			if n, p, d := b.Backlog(); n != broadcasts || p != pending || d != deferred {
				t.Errorf("%s: %d broadcasts, %d pending, %d deferred, want %d, %d, %d", when, n, p, d, broadcasts, pending, deferred)
			}
		}
		b.Begin(event, 2, fanfare.Progress{})
		b.Begin(event, 2, fanfare.Progress{})
		b.Begin(other, 5, fanfare.Progress{Counts: fanfare.Counts{fanfare.Accepted: 1, fanfare.Deferred: 2}})
		expect("at the start", 2, 4, 2)
		b.record(t, event, 0, 1, fanfare.Deferred)
		expect("one deferred", 2, 3, 3)
		b.record(t, event, 0, 2, fanfare.Accepted)
		b.record(t, event, 1, 1, fanfare.Failed)
		expect("one completed", 1, 2, 2)
		b.record(t, other, 3, 2, fanfare.Accepted)
		expect("a retry settled", 1, 2, 1)
	})
}
