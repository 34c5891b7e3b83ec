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

// whyOf counts what is put off for a destination, by reason.
func (w *town) whyOf(destination string) map[fanfare.Wait]int {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	counts := map[fanfare.Wait]int{}
	for i := range w.book.dues {
		if d := &w.book.dues[i]; d.Destination == destination {
			counts[d.Why]++
		}
	}
	return counts
}

// of is how often messages for a destination were tried, and how many are under way.
func (w *town) of(destination string) (tries, underway int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tries[destination]), w.underway[destination]
}

// hasten makes what is put off for a destination due at once, as the store does.
func (w *town) hasten(destination string) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for i := range w.book.dues {
		if d := &w.book.dues[i]; d.Destination == destination {
			d.At, d.Why, d.Destination = time.Time{}, 0, ""
		}
	}
}

func TestASuspendedDestinationIsListedUntilItIsResumedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		s := settings(nil)
		s.Connections, s.Retry = 20, Retry{24 * time.Hour, 24 * time.Hour}
		w := newTown(t, s, func(to string, _ time.Time) reply {
			if to == "sick.example" && !mended.Load() {
				return reply{5 * time.Millisecond, refusing(fanfare.ClassBusy)}
			}
			return reply{5 * time.Millisecond, taken}
		})
		w.work(shuffled(300, "sick.example", "well.example"), 3*time.Second)
		list := w.ImpairedDestinations()
		if len(list) != 1 || list[0].Name != "sick.example" || list[0].State != DestinationSuspended || list[0].Failures < 5 ||
			!list[0].Until.After(time.Now()) || list[0].Text != "not now" || list[0].TextAt.IsZero() {
			t.Fatalf("listed are %+v", list)
		}
		if n := w.CountImpaired()[DestinationSuspended]; n != 1 {
			t.Errorf("%d are counted as suspended", n)
		}
		waiting := w.whyOf("sick.example")
		if waiting[fanfare.WaitDestinationSuspended] < 200 || len(waiting) != 1 {
			t.Errorf("put off are %v", waiting)
		}
		mended.Store(true)
		if known, err := w.ResumeDestination(t.Context(), "sick.example"); !known || err != nil {
			t.Fatal(known, err)
		}
		w.hasten("sick.example")
		w.work(nil, time.Second)
		tried, _ := w.of("sick.example")
		if n := w.took(func(to string) bool { return to == "sick.example" }); n < 200 || tried != 300 {
			t.Errorf("%d of 300 are taken a second later, after %d tries: %+v", n, tried, w.ImpairedDestinations())
		}
		if list := w.ImpairedDestinations(); len(list) != 0 {
			t.Errorf("listed are %+v", list)
		}
		if known, err := w.ResumeDestination(t.Context(), "nobody.example"); known || err != nil {
			t.Error("a stranger was known", err)
		}
		w.Stop()
	})
}

// TestAResumedDestinationThatFailsAgainIsLeftAloneForLonger has an answer of before,
// of a probe, come late: it decides nothing.
func TestAResumedDestinationThatFailsAgainIsLeftAloneForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections, s.Retry = 20, Retry{24 * time.Hour, 24 * time.Hour}
		start := time.Now()
		w := newTown(t, s, func(_ string, now time.Time) reply {
			if now.Sub(start) > 9*time.Second {
				return reply{2 * time.Second, refusing(fanfare.ClassBusy)}
			}
			return reply{5 * time.Millisecond, refusing(fanfare.ClassBusy)}
		})
		w.work(shuffled(60, "sick.example"), 9*time.Second)
		tries, underway := w.of("sick.example")
		for underway != 1 { // its pause has a part of chance
			if w.work(nil, 100*time.Millisecond); time.Since(start) > time.Minute {
				t.Fatalf("%d are under way, not the probe", underway)
			}
			tries, underway = w.of("sick.example")
		}
		if _, err := w.ResumeDestination(t.Context(), "sick.example"); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second) // the probe is answered
		if list := w.ImpairedDestinations(); len(list) != 0 {
			t.Errorf("the probe of before suspended it again: %+v", list)
		}
		w.hasten("sick.example")
		w.work(nil, 3*time.Second)
		list := w.ImpairedDestinations()
		after, _ := w.of("sick.example")
		if len(list) != 1 || list[0].State != DestinationSuspended || time.Until(list[0].Until) < 15*time.Second || after-tries > 40 {
			t.Errorf("listed are %+v, after %d more tries", list, after-tries)
		}
		w.Stop()
	})
}

func TestWhoIsLimitedOrSlowIsListedAsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections, s.Direct = 20, true
		var mu sync.Mutex
		var last time.Time
		w := newTown(t, s, func(to string, now time.Time) reply {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case to == "slow.example":
				return reply{3 * time.Second, taken}
			case to == "limited.example" && now.Sub(last) < 100*time.Millisecond:
				return reply{5 * time.Millisecond, refusing(fanfare.ClassThrottled)}
			case to == "limited.example":
				last = now
			}
			return reply{5 * time.Millisecond, taken}
		})
		w.work(shuffled(40, "slow.example", "limited.example", "well.example", "fine.example", "good.example"), 4*time.Second)
		got := map[string]DestinationState{}
		for _, d := range w.ImpairedDestinations() {
			got[d.Name] = d.State
			if d.Name == "limited.example" && d.State == DestinationLimited && d.Rate == 0 && d.Window == 0 {
				t.Errorf("nothing tells how much goes to %+v", d)
			}
		}
		if got["slow.example"] != DestinationSlow || got["limited.example"] == "" || len(got) != 2 {
			t.Errorf("listed are %v", got)
		}
		w.Stop()
	})
}

// lateBook is a recorder that takes its time.
type lateBook struct {
	*book
	until chan struct{}
}

func (b lateBook) Postpone(day fanfare.Day, dues []fanfare.Due) error {
	<-b.until
	return b.book.Postpone(day, dues)
}

func TestWhatIsPutOffIsKeptBeforeAResumeReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(taking))
		b := newBench(t, gateFunc(open), s)
		late := lateBook{b.book, make(chan struct{})}
		b.options.Recorder = late
		batch := b.batch(fanfare.Normal, 3)
		for i := range batch.Jobs {
			batch.Jobs[i].Destination = "sick.example"
		}
		b.Sender.mu.Lock()
		d := b.limits.destinations.of("sick.example", time.Now())
		d.breaker.Suspend(time.Now(), time.Hour)
		b.Sender.mu.Unlock()
		b.Submit(batch)
		synctest.Wait()
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := b.ResumeDestination(soon, "sick.example"); err == nil {
			t.Error("it did not wait for what is about to be kept")
		}
		close(late.until)
		if known, err := b.ResumeDestination(t.Context(), "sick.example"); !known || err != nil {
			t.Error(known, err)
		}
		if n := len(b.book.dues); n != 3 {
			t.Errorf("%d of 3 are kept: %v", n, fmt.Sprint(b.book.dues))
		}
		b.Stop()
	})
}
