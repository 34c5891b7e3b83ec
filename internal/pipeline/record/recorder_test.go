package record

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

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
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		for i := range maxGroup + 100 {
			callers.Go(func() { b.record(t, event, i+1, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		end()
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
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		start := time.Now()
		for i, after := range []time.Duration{time.Hour, time.Minute, 2 * time.Minute} {
			callers.Go(func() {
				due := &fanfare.Due{At: start.Add(after), Channel: 7, Slice: fanfare.RecipientRange{Manifest: 64, Positions: []uint32{uint32(i)}, Attempt: 2}}
				if err := b.Record(entryOf(event, i+1, 1, fanfare.Deferred), due); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		end()
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

func TestWhatLeftTogetherIsKeptTogetherAndTheirGroupsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		const connections, recipients = 50, 100
		for c := range connections {
			entries := make([]fanfare.Entry, recipients)
			for i := range entries {
				entries[i] = *entryOf(event, 1+c*recipients+i, 1, fanfare.Accepted)
				b.Expect()
			}
			dues := []fanfare.Due{{At: time.Now().Add(time.Hour), Slice: fanfare.RecipientRange{Manifest: entries[0].Delivery.Manifest, From: uint32(c), To: uint32(c) + 1}}}
			callers.Go(func() {
				if err := b.RecordTogether(entries, dues, len(entries)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		end()
		callers.Wait()
		dues := 0
		for _, c := range b.store.kept()[1:] {
			dues += len(c.Dues)
			if len(c.Entries) > maxTogether || len(c.Entries)%recipients > 0 {
				t.Errorf("a group of %d, want whole hundreds up to %d", len(c.Entries), maxTogether)
			}
		}
		if n := len(b.store.kept()) - 1; n != connections*recipients/(maxTogether/recipients*recipients)+1 || dues != connections {
			t.Errorf("%d groups with %d dues", n, dues)
		}
		if times := b.store.times(); len(times) != connections*recipients+1 {
			t.Errorf("%d entries were kept, want %d", len(times), connections*recipients+1)
		}
		if coming := b.coming.Load(); coming != 0 {
			t.Errorf("%d more are expected", coming)
		}
	})
}
