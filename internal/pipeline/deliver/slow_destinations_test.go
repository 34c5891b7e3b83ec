package deliver

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// relayed is a town behind one relay.
func relayed(t *testing.T, behave func(to string, now time.Time) reply) *town {
	s := settings(nil)
	s.Connections, s.Retry = 20, Retry{time.Minute, time.Minute}
	return newTown(t, s, behave)
}

func isSlowOne(to string) bool { return strings.HasPrefix(to, "slow") }

// slowOnes are the destinations that are listed as slow.
func (w *town) slowOnes() (names []string) {
	for _, d := range w.ImpairedDestinations() {
		if d.State == DestinationSlow {
			names = append(names, d.Name)
		}
	}
	return names
}

func TestSlowDestinationsBehindARelayHaveAShareUntilTheOthersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := relayed(t, sick(0))
		defer w.Stop()
		rest := w.work(shuffled(200, append(named("well", 95), named("slow", 5)...)...), 8*time.Second)
		if got := len(w.slowOnes()); got != 5 {
			t.Errorf("%d destinations are slow, want 5", got)
		}
		before, slowBefore := w.took(isWell), w.took(isSlowOne)
		rest = w.work(rest, 10*time.Second)
		// 20 connections at 25 ms; one of them may be with a slow one, and behind it
		// a message waits for 2 s.
		if got := w.took(isWell) - before; got < 10*20*40*9/10 {
			t.Errorf("%d messages to others left in 10 s, of 8000", got)
		}
		if got := w.took(isSlowOne) - slowBefore; got == 0 || got > 10 {
			t.Errorf("%d messages to slow ones left in 10 s, while others waited, of 5", got)
		}
		w.work(rest, 5*time.Minute)
		if got := w.took(isSlowOne); got != 1000 {
			t.Errorf("%d messages to slow ones left in 5 min, want all 1000: half of the connections do 1500", got)
		}
	})
}

func TestARelayThatStandsStillMakesNobodySlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := relayed(t, func(_ string, now time.Time) reply {
			since := now.Sub(begun) % (5 * time.Second)
			if since < 3*time.Second {
				return reply{10 * time.Millisecond, taken}
			}
			return reply{5*time.Second - since, taken} // of each 5 s it stands still for two
		})
		defer w.Stop()
		rest := shuffled(2000, named("well", 40)...)
		for range 40 {
			rest = w.work(rest, time.Second)
			if names := w.slowOnes(); len(names) > 0 {
				t.Fatalf("slow are %v", names)
			}
		}
		if w.book.postponed > 0 {
			t.Errorf("%d times messages were put off", w.book.postponed)
		}
	})
}

func TestTheOnlyDestinationOfARelayIsNeverSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		w := relayed(t, func(string, time.Time) reply {
			if n.Add(1)%4 == 0 {
				return reply{3 * time.Second, taken}
			}
			return reply{5 * time.Millisecond, taken}
		})
		defer w.Stop()
		w.work(shuffled(2000, "well.example"), 20*time.Second)
		if names := w.slowOnes(); len(names) > 0 || w.book.postponed > 0 {
			t.Errorf("slow are %v, %d times messages were put off", names, w.book.postponed)
		}
	})
}

func TestADestinationThatIsQuickAgainIsSlowNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := relayed(t, func(to string, now time.Time) reply {
			if isSlowOne(to) && now.Sub(begun) < 20*time.Second {
				return reply{time.Second, taken}
			}
			return reply{10 * time.Millisecond, taken}
		})
		defer w.Stop()
		to := shuffled(2000, append(named("well", 39), "slow0.example")...)
		rest := w.work(to, 19*time.Second)
		if len(w.slowOnes()) != 1 {
			t.Errorf("slow are %v", w.slowOnes())
		}
		w.work(rest, 2*time.Minute)
		if names := w.slowOnes(); len(names) > 0 {
			t.Errorf("slow are %v", names)
		}
		if got := w.took(isSlowOne); got != 2000 {
			t.Errorf("it took %d messages, want 2000", got)
		}
	})
}
