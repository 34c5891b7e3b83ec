package deliver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// waitsOf counts the postponed jobs of a destination by reason.
func (sim *simulation) waitsOf(destination string) map[fanfare.Wait]int {
	sim.book.mu.Lock()
	defer sim.book.mu.Unlock()
	counts := map[fanfare.Wait]int{}
	for i := range sim.book.dues {
		if d := &sim.book.dues[i]; d.Destination == destination {
			counts[d.Why]++
		}
	}
	return counts
}

// of returns how often messages for a destination were attempted, and how many are active.
func (sim *simulation) of(destination string) (tries, underway int) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return len(sim.tries[destination]), sim.underway[destination]
}

// skipPause makes the postponed jobs of a destination due at once, as the store does.
func (sim *simulation) skipPause(destination string) {
	sim.book.mu.Lock()
	defer sim.book.mu.Unlock()
	for i := range sim.book.dues {
		if d := &sim.book.dues[i]; d.Destination == destination {
			d.At, d.Why, d.Destination = time.Time{}, 0, ""
		}
	}
}

func TestSuspendedDestinationIsListedUntilItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		s := settings(nil)
		s.Connections, s.Retry = 20, Retry{24 * time.Hour, 24 * time.Hour}
		sim := newSimulation(t, s, func(to string, _ time.Time) reply {
			if to == "sick.example" && !mended.Load() {
				return reply{5 * time.Millisecond, refusing(fanfare.ClassBusy)}
			}
			return reply{5 * time.Millisecond, accepted}
		})
		sim.sendFor(shuffled(300, "sick.example", "well.example"), 3*time.Second)
		list := sim.ImpairedDestinations()
		if len(list) != 1 || list[0].Name != "sick.example" || list[0].State != DestinationSuspended || list[0].Failures < 5 ||
			!list[0].Until.After(time.Now()) || list[0].Text != "not now" || list[0].TextAt.IsZero() {
			t.Fatalf("listed are %+v", list)
		}
		if n := sim.CountImpaired()[DestinationSuspended]; n != 1 {
			t.Errorf("%d are counted as suspended", n)
		}
		waiting := sim.waitsOf("sick.example")
		if waiting[fanfare.WaitDestinationSuspended] < 200 || len(waiting) != 1 {
			t.Errorf("postponed: %v", waiting)
		}
		mended.Store(true)
		if known, err := sim.ResumeDestination(t.Context(), "sick.example"); !known || err != nil {
			t.Fatal(known, err)
		}
		sim.skipPause("sick.example")
		sim.sendFor(nil, time.Second)
		tried, _ := sim.of("sick.example")
		if n := sim.count(func(to string) bool { return to == "sick.example" }); n < 200 || tried != 300 {
			t.Errorf("%d of 300 are taken a second later, after %d tries: %+v", n, tried, sim.ImpairedDestinations())
		}
		if list := sim.ImpairedDestinations(); len(list) != 0 {
			t.Errorf("listed are %+v", list)
		}
		if known, err := sim.ResumeDestination(t.Context(), "nobody.example"); known || err != nil {
			t.Error("an unknown destination was reported as known", err)
		}
		sim.Stop()
	})
}

// TestResumedDestinationThatFailsAgainIsSuspendedLonger has the reply to an earlier probe
// arrive late: it is ignored.
func TestResumedDestinationThatFailsAgainIsSuspendedLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections, s.Retry = 20, Retry{24 * time.Hour, 24 * time.Hour}
		start := time.Now()
		sim := newSimulation(t, s, func(_ string, now time.Time) reply {
			if now.Sub(start) > 9*time.Second {
				return reply{2 * time.Second, refusing(fanfare.ClassBusy)}
			}
			return reply{5 * time.Millisecond, refusing(fanfare.ClassBusy)}
		})
		sim.sendFor(shuffled(60, "sick.example"), 9*time.Second)
		tries, underway := sim.of("sick.example")
		for underway != 1 { // the pause has a random part
			if sim.sendFor(nil, 100*time.Millisecond); time.Since(start) > time.Minute {
				t.Fatalf("%d are under way, not the probe", underway)
			}
			tries, underway = sim.of("sick.example")
		}
		if _, err := sim.ResumeDestination(t.Context(), "sick.example"); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second) // the probe has its reply
		if list := sim.ImpairedDestinations(); len(list) != 0 {
			t.Errorf("the probe of before suspended it again: %+v", list)
		}
		sim.skipPause("sick.example")
		sim.sendFor(nil, 3*time.Second)
		list := sim.ImpairedDestinations()
		after, _ := sim.of("sick.example")
		if len(list) != 1 || list[0].State != DestinationSuspended || time.Until(list[0].Until) < 15*time.Second || after-tries > 40 {
			t.Errorf("listed are %+v, after %d more tries", list, after-tries)
		}
		sim.Stop()
	})
}

func TestLimitedAndSlowDestinationsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections, s.Direct = 20, true
		var mu sync.Mutex
		var last time.Time
		sim := newSimulation(t, s, func(to string, now time.Time) reply {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case to == "slow.example":
				return reply{3 * time.Second, accepted}
			case to == "limited.example" && now.Sub(last) < 100*time.Millisecond:
				return reply{5 * time.Millisecond, refusing(fanfare.ClassThrottled)}
			case to == "limited.example":
				last = now
			}
			return reply{5 * time.Millisecond, accepted}
		})
		sim.sendFor(shuffled(40, "slow.example", "limited.example", "well.example", "fine.example", "good.example"), 4*time.Second)
		got := map[string]DestinationState{}
		for _, d := range sim.ImpairedDestinations() {
			got[d.Name] = d.State
			if d.Name == "limited.example" && d.State == DestinationLimited && d.Rate == 0 && d.Window == 0 {
				t.Errorf("nothing tells how much goes to %+v", d)
			}
		}
		if got["slow.example"] != DestinationSlow || got["limited.example"] == "" || len(got) != 2 {
			t.Errorf("listed are %v", got)
		}
		sim.Stop()
	})
}

// lateRecorder is a slow recorder.
type lateRecorder struct {
	*fakeRecorder
	until chan struct{}
}

func (b lateRecorder) Postpone(day fanfare.Day, dues []fanfare.Due) error {
	<-b.until
	return b.fakeRecorder.Postpone(day, dues)
}

func TestResumeWaitsUntilPostponedJobsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(acceptAll))
		f := newFixture(t, gateFunc(allowAll), s)
		late := lateRecorder{f.book, make(chan struct{})}
		f.options.Recorder = late
		batch := f.batch(fanfare.Normal, 3)
		for i := range batch.Jobs {
			batch.Jobs[i].Destination = "sick.example"
		}
		f.Sender.mu.Lock()
		d := f.limits.destinations.of("sick.example", time.Now())
		d.breaker.Suspend(time.Now(), time.Hour)
		f.Sender.mu.Unlock()
		f.Submit(batch)
		synctest.Wait()
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := f.ResumeDestination(soon, "sick.example"); err == nil {
			t.Error("it did not wait for what is about to be kept")
		}
		close(late.until)
		if known, err := f.ResumeDestination(t.Context(), "sick.example"); !known || err != nil {
			t.Error(known, err)
		}
		if n := len(f.book.dues); n != 3 {
			t.Errorf("%d of 3 are kept: %v", n, fmt.Sprint(f.book.dues))
		}
		f.Stop()
	})
}
