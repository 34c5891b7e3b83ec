package deliver

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// relayed returns a simulation behind one relay.
func relayed(t *testing.T, behave func(to string, now time.Time) reply) *simulation {
	s := settings(nil)
	s.Connections, s.Retry = 20, Retry{time.Minute, time.Minute}
	return newSimulation(t, s, behave)
}

func isSlowName(to string) bool { return strings.HasPrefix(to, "slow") }

// slowDestinations lists the destinations in state slow.
func (sim *simulation) slowDestinations() (names []string) {
	for _, d := range sim.ImpairedDestinations() {
		if d.State == DestinationSlow {
			names = append(names, d.Name)
		}
	}
	return names
}

func TestSlowDestinationsBehindARelayGetAShareUntilTheOthersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := relayed(t, failingDestinations(0))
		defer sim.Stop()
		rest := sim.sendFor(shuffled(200, append(named("well", 95), named("slow", 5)...)...), 8*time.Second)
		if got := len(sim.slowDestinations()); got != 5 {
			t.Errorf("%d destinations are slow, want 5", got)
		}
		before, slowBefore := sim.count(isHealthy), sim.count(isSlowName)
		rest = sim.sendFor(rest, 10*time.Second)
		// 20 connections at 25 ms; one of them may be busy with a slow destination, and
		// another message waits 2 s behind it.
		if got := sim.count(isHealthy) - before; got < 10*20*40*9/10 {
			t.Errorf("%d messages to others left in 10 s, of 8000", got)
		}
		if got := sim.count(isSlowName) - slowBefore; got == 0 || got > 10 {
			t.Errorf("%d messages to slow ones left in 10 s, while others waited, of 5", got)
		}
		sim.sendFor(rest, 5*time.Minute)
		if got := sim.count(isSlowName); got != 1000 {
			t.Errorf("%d messages to slow ones left in 5 min, want all 1000: half of the connections do 1500", got)
		}
	})
}

func TestStalledRelayMakesNoDestinationSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		sim := relayed(t, func(_ string, now time.Time) reply {
			since := now.Sub(begun) % (5 * time.Second)
			if since < 3*time.Second {
				return reply{10 * time.Millisecond, accepted}
			}
			return reply{5*time.Second - since, accepted} // it stalls for two of every 5 s
		})
		defer sim.Stop()
		rest := shuffled(2000, named("well", 40)...)
		for range 40 {
			rest = sim.sendFor(rest, time.Second)
			if names := sim.slowDestinations(); len(names) > 0 {
				t.Fatalf("slow are %v", names)
			}
		}
		if sim.book.postponed > 0 {
			t.Errorf("messages were postponed %d times", sim.book.postponed)
		}
	})
}

func TestTheOnlyDestinationOfARelayIsNeverSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		sim := relayed(t, func(string, time.Time) reply {
			if n.Add(1)%4 == 0 {
				return reply{3 * time.Second, accepted}
			}
			return reply{5 * time.Millisecond, accepted}
		})
		defer sim.Stop()
		sim.sendFor(shuffled(2000, "well.example"), 20*time.Second)
		if names := sim.slowDestinations(); len(names) > 0 || sim.book.postponed > 0 {
			t.Errorf("slow: %v; messages were postponed %d times", names, sim.book.postponed)
		}
	})
}

func TestFastDestinationIsNotSlowAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		sim := relayed(t, func(to string, now time.Time) reply {
			if isSlowName(to) && now.Sub(begun) < 20*time.Second {
				return reply{time.Second, accepted}
			}
			return reply{10 * time.Millisecond, accepted}
		})
		defer sim.Stop()
		to := shuffled(2000, append(named("well", 39), "slow0.example")...)
		rest := sim.sendFor(to, 19*time.Second)
		if len(sim.slowDestinations()) != 1 {
			t.Errorf("slow are %v", sim.slowDestinations())
		}
		sim.sendFor(rest, 2*time.Minute)
		if names := sim.slowDestinations(); len(names) > 0 {
			t.Errorf("slow are %v", names)
		}
		if got := sim.count(isSlowName); got != 2000 {
			t.Errorf("it took %d messages, want 2000", got)
		}
	})
}
