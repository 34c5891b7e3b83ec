package record

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

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
		b.Begin(event, allFailedAfter, fanfare.Progress{})
		for i := range allFailedAfter {
			b.record(t, event, i, 1, fanfare.Failed)
		}
		synctest.Wait()
		if len(b.sour) != 0 || len(b.store.completions()) != 1 {
			t.Errorf("told %v, completed %d times", b.sour, len(b.store.completions()))
		}
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

// TestWhatIsCountedIsKept looks at a broadcast while an outcome of it is about to be
// kept: a kill could take that back, and the store does not have it yet.
func TestWhatIsCountedIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 3, fanfare.Progress{})
		b.record(t, event, 1, 1, fanfare.Deferred)
		expect := func(when string, want fanfare.Counts) {
			t.Helper()
			p, _ := b.Progress(event)
			if _, pending, deferred := b.Backlog(); p.Counts != want || pending != want[fanfare.Pending] || deferred != want[fanfare.Deferred] {
				t.Errorf("%s: %v, and %d pending and %d deferred in all, want %v", when, p.Counts, pending, deferred, want)
			}
		}
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		expect("while the second is about to be kept", fanfare.Counts{fanfare.Pending: 2, fanfare.Deferred: 1})
		end()
		callers.Wait()
		expect("once it is kept", fanfare.Counts{fanfare.Pending: 1, fanfare.Deferred: 1, fanfare.Accepted: 1})
	})
}
