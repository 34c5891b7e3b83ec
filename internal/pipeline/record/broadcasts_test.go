package record

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// TestBroadcastIsCompletedOnceWithExactCounts settles 300 deliveries, some after retries,
// from many callers in any order.
func TestBroadcastIsCompletedOnceWithExactCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 300, fanfare.Progress{})
		f.Begin(event, 7, fanfare.Progress{}) // has no effect
		final := []fanfare.State{fanfare.Accepted, fanfare.Failed, fanfare.Expired, fanfare.Cancelled, fanfare.Suppressed, fanfare.Accepted}
		var callers sync.WaitGroup
		for i := range 300 {
			callers.Go(func() {
				attempt := uint16(1)
				for range i % 4 {
					f.record(t, event, i, attempt, fanfare.Deferred)
					attempt++
				}
				if p, open := f.Progress(event); !open || p.Counts.Total() != 300 {
					t.Errorf("under way: %v (%v)", p.Counts, open)
				}
				f.record(t, event, i, attempt, final[i%len(final)])
			})
		}
		callers.Wait()
		done := f.store.completions()
		if len(done) != 1 || done[0].Seq != event.Seq {
			t.Fatalf("%d completions, want 1", len(done))
		}
		p := done[0].Progress
		want := fanfare.Counts{fanfare.Accepted: 100, fanfare.Failed: 50, fanfare.Expired: 50, fanfare.Cancelled: 50, fanfare.Suppressed: 50}
		if p.Counts != want || p.Completed.IsZero() || p.First.IsZero() || p.Last.Before(p.First) || p.Completed.Before(p.Last) {
			t.Errorf("completed with %+v, want %v", p, want)
		}
		last := f.store.recorded()[len(f.store.recorded())-1]
		if len(last.Completions) != 1 {
			t.Error("the completion is not in the commit of the last outcome")
		}
		if _, open := f.Progress(event); open || len(f.Open(10)) != 0 {
			t.Error("it is still open")
		}
	})
}

func TestBroadcastContinuesAfterRestart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 5, fanfare.Progress{Counts: fanfare.Counts{fanfare.Accepted: 2, fanfare.Deferred: 1}, First: time.Now().Add(-time.Hour)})
		if p, _ := f.Progress(event); p.Counts[fanfare.Pending] != 2 || p.Counts.Total() != 5 {
			t.Errorf("begun with %v", p.Counts)
		}
		f.record(t, event, 2, 2, fanfare.Accepted) // the deferred one
		f.record(t, event, 3, 1, fanfare.Accepted)
		if len(f.store.completions()) != 0 || !slices.Equal(f.Open(10), []fanfare.EventRef{event}) {
			t.Error("completed too early")
		}
		f.record(t, event, 4, 1, fanfare.Failed)
		done := f.store.completions()
		if len(done) != 1 || done[0].Progress.Counts != (fanfare.Counts{fanfare.Accepted: 4, fanfare.Failed: 1}) || time.Since(done[0].Progress.First) < time.Hour {
			t.Errorf("completions %+v", done)
		}
	})
}

func TestOnAllFailedIsCalledOnce(t *testing.T) {
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
			inBubble(t, func(t *testing.T, f *fixture) {
				f.Begin(event, 500, fanfare.Progress{})
				position := 0
				for _, state := range c.others {
					f.record(t, event, position, 1, state)
					position++
				}
				for range c.failed {
					f.record(t, event, position, 1, fanfare.Failed)
					position++
				}
				synctest.Wait()
				f.mu.Lock()
				defer f.mu.Unlock()
				if told := len(f.allFailed); told > 1 || (told == 1) != c.told {
					t.Errorf("OnAllFailed was called %d times, want it called: %v", told, c.told)
				}
			})
		})
	}
}

func TestCompletedBroadcastIsNotReportedAsAllFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, allFailedAfter, fanfare.Progress{})
		for i := range allFailedAfter {
			f.record(t, event, i, 1, fanfare.Failed)
		}
		synctest.Wait()
		if len(f.allFailed) != 0 || len(f.store.completions()) != 1 {
			t.Errorf("OnAllFailed was called for %v, completed %d times", f.allFailed, len(f.store.completions()))
		}
	})
}

func TestBacklogIsTheSumOfOpenBroadcasts(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		other := fanfare.EventRef{Day: event.Day, Seq: event.Seq + 1}
		expect := func(when string, broadcasts int, pending, deferred int64) {
			t.Helper()
			if n, p, d := f.Backlog(); n != broadcasts || p != pending || d != deferred {
				t.Errorf("%s: %d broadcasts, %d pending, %d deferred, want %d, %d, %d", when, n, p, d, broadcasts, pending, deferred)
			}
		}
		f.Begin(event, 2, fanfare.Progress{})
		f.Begin(event, 2, fanfare.Progress{})
		f.Begin(other, 5, fanfare.Progress{Counts: fanfare.Counts{fanfare.Accepted: 1, fanfare.Deferred: 2}})
		expect("at the start", 2, 4, 2)
		f.record(t, event, 0, 1, fanfare.Deferred)
		expect("one deferred", 2, 3, 3)
		f.record(t, event, 0, 2, fanfare.Accepted)
		f.record(t, event, 1, 1, fanfare.Failed)
		expect("one completed", 1, 2, 2)
		f.record(t, other, 3, 2, fanfare.Accepted)
		expect("a retry settled", 1, 2, 1)
	})
}

// TestProgressCountsRecordedEntriesOnly reads the progress of a broadcast while an outcome
// is about to be committed: a kill could still lose it.
func TestProgressCountsRecordedEntriesOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 3, fanfare.Progress{})
		f.record(t, event, 1, 1, fanfare.Deferred)
		expect := func(when string, want fanfare.Counts) {
			t.Helper()
			p, _ := f.Progress(event)
			if _, pending, deferred := f.Backlog(); p.Counts != want || pending != want[fanfare.Pending] || deferred != want[fanfare.Deferred] {
				t.Errorf("%s: %v, and %d pending and %d deferred in all, want %v", when, p.Counts, pending, deferred, want)
			}
		}
		var callers sync.WaitGroup
		end := f.committing(t, &callers)
		expect("while the second is about to be kept", fanfare.Counts{fanfare.Pending: 2, fanfare.Deferred: 1})
		end()
		callers.Wait()
		expect("once it is kept", fanfare.Counts{fanfare.Pending: 1, fanfare.Deferred: 1, fanfare.Accepted: 1})
	})
}
