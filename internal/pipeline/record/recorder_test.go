package record

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

func TestRecordReturnsWhenItsEntryIsDurable(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		hold := make(chan struct{})
		f.store.set(func(s *memoryStore) { s.hold = hold })
		returned := make(chan struct{})
		go func() {
			f.record(t, event, 1, 1, fanfare.Accepted)
			if n := len(f.store.recorded()); n != 1 {
				t.Errorf("returned after %d commits", n)
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
		got := f.store.recorded()[0].Entries[0]
		if want := entryOf(event, 1, 1, fanfare.Accepted); got != *want {
			t.Errorf("recorded %+v, want %+v", got, *want)
		}
		totals, groups := f.Totals()
		if totals[fanfare.Accepted] != 1 || totals.Total() != 1 || groups != 1 {
			t.Errorf("totals %v in %d groups", totals, groups)
		}
	})
}

func TestEntriesAccumulateDuringACommit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		for i := range maxGroup + 100 {
			callers.Go(func() { f.record(t, event, i+1, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		end()
		callers.Wait()
		var sizes []int
		for _, c := range f.store.recorded() {
			sizes = append(sizes, len(c.Entries))
		}
		if want := []int{1, maxGroup, 100}; !slices.Equal(sizes, want) {
			t.Errorf("groups of %v, want %v", sizes, want)
		}
	})
}

// TestGroupWaitsForMessagesInFlightOnly checks that one sync serves all connections.
func TestGroupWaitsForMessagesInFlightOnly(t *testing.T) {
	for _, c := range []struct {
		name    string
		expect  int
		answers []time.Duration // after the first
		groups  []int
		took    time.Duration // of the first
	}{
		{"alone", 1, nil, []int{1}, 0},
		{"all answer soon", 4, []time.Duration{0, 100 * time.Microsecond, 300 * time.Microsecond}, []int{4}, 300 * time.Microsecond},
		{"one never answers", 3, []time.Duration{0}, []int{2}, maxGather},
		{"one is late", 3, []time.Duration{0, time.Second}, []int{2, 1}, maxGather},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fixture) {
				for range c.expect {
					f.Expect()
				}
				var callers sync.WaitGroup
				for i, after := range c.answers {
					callers.Go(func() {
						<-time.After(after)
						if err := f.RecordExpected(entryOf(event, i+1, 1, fanfare.Accepted), nil); err != nil {
							t.Error(err)
						}
					})
				}
				start := time.Now()
				if err := f.RecordExpected(entryOf(event, 0, 1, fanfare.Accepted), nil); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("the first waited %v, want %v", took, c.took)
				}
				callers.Wait()
				var sizes []int
				for _, commit := range f.store.recorded() {
					sizes = append(sizes, len(commit.Entries))
				}
				if !slices.Equal(sizes, c.groups) {
					t.Errorf("groups of %v, want %v", sizes, c.groups)
				}
			})
		})
	}
}

func TestCallersWaitWhileTheStoreRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 100, fanfare.Progress{})
		f.store.set(func(s *memoryStore) { s.refuse = &fanfare.Error{Code: fanfare.DiskFull, Message: "full"} })
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() { f.record(t, event, i, 1, fanfare.Accepted) })
		}
		<-time.After(time.Minute)
		var tries int
		f.store.set(func(s *memoryStore) { tries = s.tries })
		if tries < 100 || len(f.store.recorded()) != 0 {
			t.Errorf("%d tries in a minute, %d commits", tries, len(f.store.recorded()))
		}
		if totals, _ := f.Totals(); totals.Total() != 0 {
			t.Errorf("totals %v before the first commit", totals)
		}
		f.store.set(func(s *memoryStore) { s.refuse = nil })
		callers.Wait()
		times := f.store.times()
		if len(times) != 100 {
			t.Errorf("%d entries are recorded, want 100", len(times))
		}
		for e, n := range times {
			if n != 1 {
				t.Errorf("%s is recorded %d times", e, n)
			}
		}
		if done := f.store.completions(); len(done) != 1 || done[0].Progress.Counts[fanfare.Accepted] != 100 {
			t.Errorf("completions %+v", done)
		}
	})
}

func TestRemovedDayDoesNotBlockOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 1, fanfare.Progress{})
		f.store.set(func(s *memoryStore) { s.refuse = &fanfare.Error{Code: fanfare.NotFound, Message: "no such day"} })
		if err := f.Record(entryOf(event, 1, 1, fanfare.Accepted), nil); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
		f.store.set(func(s *memoryStore) { s.refuse = nil })
		f.record(t, tomorrow, 1, 1, fanfare.Accepted)
		if _, open := f.Progress(event); open {
			t.Error("a broadcast of the removed day is still open")
		}
	})
}

func TestGroupOfSeveralDaysIsCommittedByDay(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var entries []fanfare.Entry
		for i := range 30 {
			ref := event
			ref.Day += fanfare.Day(i * 7 % 4)
			entries = append(entries, *entryOf(ref, i, 1, fanfare.Accepted))
		}
		if err := f.RecordAll(entries); err != nil {
			t.Fatal(err)
		}
		if len(f.store.days) != 4 || len(f.store.times()) != 30 {
			t.Errorf("%d commits of %d entries, want 4 of 30", len(f.store.days), len(f.store.times()))
		}
		for i, c := range f.store.recorded() {
			for _, e := range c.Entries {
				if e.Delivery.Day != f.store.days[i] {
					t.Errorf("an entry of %v is in a commit of %v", e.Delivery.Day, f.store.days[i])
				}
			}
		}
	})
}

func TestRetryIsCommittedWithItsEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		start := time.Now()
		for i, after := range []time.Duration{time.Hour, time.Minute, 2 * time.Minute} {
			callers.Go(func() {
				due := &fanfare.Due{At: start.Add(after), Channel: 7, Slice: fanfare.RecipientRange{Manifest: 64, Positions: []uint32{uint32(i)}, Attempt: 2}}
				if err := f.Record(entryOf(event, i+1, 1, fanfare.Deferred), due); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		end()
		callers.Wait()
		synctest.Wait()
		if dues := f.store.recorded()[1].Dues; len(dues) != 3 {
			t.Errorf("kept %v", dues)
		}
		if told := f.dues[today]; len(told) != 1 || !told[0].Equal(start.Add(time.Minute)) {
			t.Errorf("WorkDue got %v, want one minute after %v", told, start)
		}
	})
}

func TestRecordGroupCommitsTogetherWithinTheMaximum(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		const connections, recipients = 50, 100
		for c := range connections {
			entries := make([]fanfare.Entry, recipients)
			for i := range entries {
				entries[i] = *entryOf(event, 1+c*recipients+i, 1, fanfare.Accepted)
				f.Expect()
			}
			dues := []fanfare.Due{{At: time.Now().Add(time.Hour), Slice: fanfare.RecipientRange{Manifest: entries[0].Delivery.Manifest, From: uint32(c), To: uint32(c) + 1}}}
			callers.Go(func() {
				if err := f.RecordGroup(entries, dues, len(entries)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		end()
		callers.Wait()
		dues := 0
		for _, c := range f.store.recorded()[1:] {
			dues += len(c.Dues)
			if len(c.Entries) > maxGroupEntries || len(c.Entries)%recipients > 0 {
				t.Errorf("a group of %d, want whole hundreds up to %d", len(c.Entries), maxGroupEntries)
			}
		}
		if n := len(f.store.recorded()) - 1; n != connections*recipients/(maxGroupEntries/recipients*recipients)+1 || dues != connections {
			t.Errorf("%d groups with %d dues", n, dues)
		}
		if times := f.store.times(); len(times) != connections*recipients+1 {
			t.Errorf("%d entries were recorded, want %d", len(times), connections*recipients+1)
		}
		if coming := f.expected.Load(); coming != 0 {
			t.Errorf("%d more are expected", coming)
		}
	})
}

// TestSentMessageDoesNotWaitForThousandsOfUnsentEntries settles a batch without messages
// while a message is in flight.
func TestSentMessageDoesNotWaitForThousandsOfUnsentEntries(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		entry := func(position int) fanfare.Entry {
			return fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, 0), Position: uint32(position)}, Attempt: 1, State: fanfare.Suppressed, At: time.Now()}
		}
		callers.Go(func() {
			all := make([]fanfare.Entry, 5*maxGroup)
			for i := range all {
				all[i] = entry(100 + i)
			}
			if err := f.RecordAll(all); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		f.Expect()
		callers.Go(func() {
			left := entry(99)
			if err := f.RecordExpected(&left, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		end()
		callers.Wait()
		kept := f.store.recorded()
		if first := kept[1].Entries[0].Delivery.Position; first != 99 || len(kept[1].Entries) != maxGroup {
			t.Errorf("the next group has %d entries and begins with position %d, want %d and the sent message", len(kept[1].Entries), first, maxGroup)
		}
	})
}

func TestUnsentEntriesGetTheirPartOfEachGroup(t *testing.T) {
	r := &Recorder{}
	for range 3 * maxGroup {
		r.waiting, r.unsent = append(r.waiting, &pendingWrite{}), append(r.unsent, &pendingWrite{due: &fanfare.Due{}})
	}
	for left := 6 * maxGroup; left > 0; left -= maxGroup {
		group := r.take(nil)
		behind := 0
		for _, w := range group {
			if w.due != nil {
				behind++
			}
		}
		if len(group) != maxGroup || behind < minUnsent {
			t.Errorf("a group of %d has %d unsent entries, want at least %d of %d", len(group), behind, minUnsent, maxGroup)
		}
	}
	if r.hasWaiting() {
		t.Error("entries are still waiting")
	}
}

func TestStopCommitsWaitingEntriesAndRefusesNewOnes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		hold := make(chan struct{})
		f.store.set(func(s *memoryStore) { s.hold = hold })
		f.Expect() // of a connection that never reports
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() { f.record(t, event, i, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { f.Stop(); close(stopped) }()
		synctest.Wait()
		for name, late := range map[string]error{
			"Record":         f.Record(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordExpected": f.RecordExpected(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordAll":      f.RecordAll([]fanfare.Entry{*entryOf(event, 99, 1, fanfare.Accepted)}),
		} {
			if fanfare.CodeOf(late) != fanfare.Unavailable {
				t.Errorf("%s after Stop: %v", name, late)
			}
		}
		select {
		case <-stopped:
			t.Error("stopped before the waiting entries were committed")
		default:
		}
		f.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
		<-stopped
		callers.Wait()
		if n := len(f.store.times()); n != 50 {
			t.Errorf("%d entries are recorded, want 50", n)
		}
		f.Stop()
	})
}

func TestStopGivesUpOnAStoreThatRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		refused := errors.New("broken")
		f.store.set(func(s *memoryStore) { s.refuse = refused })
		got := make(chan error, 2)
		go func() { got <- f.Record(entryOf(event, 1, 1, fanfare.Accepted), nil) }()
		synctest.Wait()
		go func() { got <- f.RecordAll([]fanfare.Entry{*entryOf(event, 2, 1, fanfare.Accepted)}) }()
		synctest.Wait()
		f.Stop()
		for range cap(got) {
			if err := <-got; !errors.Is(err, refused) {
				t.Errorf("a caller got %v", err)
			}
		}
	})
}

func TestStopWaitsForOnAllFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, store := make(chan struct{}), &memoryStore{}
		r := Start(Options{Store: store, Clock: testClock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), OnAllFailed: func(fanfare.EventRef) { <-hold }})
		r.Begin(event, 500, fanfare.Progress{})
		for i := range allFailedAfter {
			if err := r.Record(entryOf(event, i, 1, fanfare.Failed), nil); err != nil {
				t.Fatal(err)
			}
		}
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stopped during a callback")
		default:
		}
		close(hold)
		<-stopped
	})
}

func postponedWork(ref fanfare.EventRef, position uint32, at time.Time) fanfare.Due {
	return fanfare.Due{At: at, Channel: 7, Lane: fanfare.Bulk, Slice: fanfare.RecipientRange{
		Manifest: fanfare.NewManifestID(ref.Seq, 0), Positions: []uint32{position}, Attempt: 1,
	}}
}

func TestPostponedWorkHasNoEntryAndIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 3, fanfare.Progress{})
		at := time.Now().UTC().Add(time.Hour)
		dues := []fanfare.Due{postponedWork(event, 1, at.Add(time.Minute)), postponedWork(event, 2, at)}
		if err := f.Postpone(today, dues); err != nil {
			t.Fatal(err)
		}
		kept := f.store.recorded()
		if len(kept) != 1 || len(kept[0].Entries) != 0 || len(kept[0].Dues) != 2 || len(kept[0].Completions) != 0 || f.store.days[0] != today {
			t.Errorf("kept %+v of %v", kept, f.store.days)
		}
		if progress, open := f.Progress(event); !open || progress.Counts[fanfare.Pending] != 3 || !progress.First.IsZero() {
			t.Errorf("progress of the broadcast: %+v", progress)
		}
		synctest.Wait() // the callback runs in parallel
		f.mu.Lock()
		told := f.dues[today]
		f.mu.Unlock()
		if len(told) != 1 || !told[0].Equal(at) {
			t.Errorf("WorkDue got %v, want the earliest, %v", told, at)
		}
		if err := f.Postpone(today, nil); err != nil || len(f.store.recorded()) != 1 {
			t.Errorf("postponing nothing made %d commits, %v", len(f.store.recorded()), err)
		}
	})
}

func TestPostponedWorkSharesTheCommitOfEntries(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		callers.Go(func() { f.record(t, event, 1, 1, fanfare.Accepted) })
		callers.Go(func() {
			if err := f.Postpone(today, []fanfare.Due{postponedWork(event, 2, time.Now())}); err != nil {
				t.Error(err)
			}
		})
		callers.Go(func() {
			if err := f.Postpone(today+1, []fanfare.Due{postponedWork(tomorrow, 2, time.Now())}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		end()
		callers.Wait()
		shared := 0
		for i, c := range f.store.recorded()[1:] {
			if f.store.days[i+1] == today && len(c.Entries) == 1 && len(c.Dues) == 1 {
				shared++
			}
			if f.store.days[i+1] == today+1 && (len(c.Entries) != 0 || len(c.Dues) != 1) {
				t.Errorf("the other day has %+v", c)
			}
		}
		if shared != 1 || len(f.store.recorded()) != 3 {
			t.Errorf("commits %+v", f.store.recorded()[1:])
		}
	})
}

func TestNothingIsPostponedAfterTheRecorderStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Stop()
		if err := f.Postpone(today, []fanfare.Due{postponedWork(event, 1, time.Now())}); err == nil {
			t.Error("postponed after the end")
		}
	})
}
