package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// failingDestinations decides by the name of a destination; those named well are healthy.
func failingDestinations(dead time.Duration) func(string, time.Time) reply {
	return func(to string, _ time.Time) reply {
		switch {
		case strings.HasPrefix(to, "dead"):
			return reply{dead, driver.Outcome{Verdict: driver.Lost, Text: "timed out", Class: fanfare.ClassNetwork}}
		case strings.HasPrefix(to, "slow"):
			return reply{2 * time.Second, accepted}
		case strings.HasPrefix(to, "busy"):
			return reply{5 * time.Millisecond, refusing(fanfare.ClassThrottled)}
		}
		return reply{25 * time.Millisecond, accepted}
	}
}

func isHealthy(to string) bool { return strings.HasPrefix(to, "well") }

// TestFailingDestinationsDoNotDelayHealthyOnes sends to a thousand destinations, of which
// ten are down, ten slow, and ten refuse most messages. It compares the time of the healthy
// ones with a run without the others.
func TestFailingDestinationsDoNotDelayHealthyOnes(t *testing.T) {
	for _, c := range []struct {
		name        string
		direct      bool
		dead        time.Duration
		connections int
		least       float64 // share of the rate without failing destinations
	}{
		{"webhooks, dead ones time out", true, 10 * time.Second, 20, 0.95},
		{"mail by a relay, dead ones are refused", false, 5 * time.Millisecond, 50, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(t *testing.T, others []string) (taken int) {
				synctest.Test(t, func(t *testing.T) {
					s := settings(nil)
					s.Direct, s.Connections, s.Retry = c.direct, c.connections, Retry{time.Minute, time.Minute}
					sim := newSimulation(t, s, failingDestinations(c.dead))
					rest := sim.sendFor(shuffled(30, append(named("well", 970), others...)...), 4*time.Second)
					before := sim.count(isHealthy) // after the failing ones are known
					if rest = sim.sendFor(rest, 6*time.Second); len(rest) == 0 {
						t.Error("there was nothing left to send")
					}
					taken = sim.count(isHealthy) - before
					sim.Stop()
				})
				return taken
			}
			alone := run(t, nil)
			with := run(t, slices.Concat(named("dead", 10), named("busy", 10), named("slow", 10)))
			rate := float64(with) / float64(alone)
			t.Logf("the healthy ran at %.3f of their rate: %d messages with the sick, %d without", rate, with, alone)
			if rate < c.least {
				t.Errorf("that is less than %v", c.least)
			}
		})
	}
}

// TestLimitedDestinationDoesNotDelayOthers has a destination with a rate and one with few
// connections, beside one without limits.
func TestLimitedDestinationDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections = 20
		s.Destinations = Destinations{
			Each: DestinationLimit{Connections: 12},
			Only: map[string]DestinationLimit{"paced.example": {Rate: 10}, "narrow.example": {Connections: 2}},
		}
		sim := newSimulation(t, s, failingDestinations(0))
		start := time.Now()
		sim.sendFor(append(append(shuffled(200, "paced.example"), shuffled(500, "narrow.example")...), shuffled(3000, "well.example")...), 10*time.Second)
		if n := sim.count(isHealthy); n != 3000 {
			t.Errorf("the one without limits got %d of 3000 within 10 s", n)
		}
		sim.sendFor(nil, 2*time.Minute)
		sim.mu.Lock()
		defer sim.mu.Unlock()
		for to, want := range map[string]int{"paced.example": 200, "narrow.example": 500, "well.example": 3000} {
			if sim.accepted[to] != want {
				t.Errorf("%s got %d of %d", to, sim.accepted[to], want)
			}
		}
		tries := sim.tries["paced.example"]
		for i := 10; i < len(tries); i++ {
			if span := tries[i].Sub(tries[i-10]); span < time.Second {
				t.Fatalf("eleven messages within %v at 10 a second", span)
			}
		}
		if took := tries[len(tries)-1].Sub(start); took > 25*time.Second {
			t.Errorf("200 messages at 10 a second took %v", took)
		}
		if sim.most["narrow.example"] != 2 || sim.most["well.example"] > 12 {
			t.Errorf("%d were under way to one that takes 2, %d to one that takes 12", sim.most["narrow.example"], sim.most["well.example"])
		}
		sim.Stop()
	})
}

// TestSuspendedDestinationIsProbedAndHoldsNoMemory has a destination that is down for five
// minutes.
func TestSuspendedDestinationIsProbedAndHoldsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct = true
		up := time.Now().Add(5 * time.Minute)
		sim := newSimulation(t, s, func(to string, now time.Time) reply {
			if now.Before(up) {
				return failingDestinations(time.Second)("dead", now)
			}
			return reply{time.Millisecond, accepted}
		})
		batch := sim.send(fanfare.Normal, shuffled(300, "well.example"))
		sim.sendFor(nil, time.Minute)
		if _, ok := sim.resultOf(batch); !ok {
			t.Error("the sender still has its jobs")
		}
		if status := sim.Status(); status.Queued+status.Throttled+status.InFlight > 1 {
			t.Errorf("what is suspended holds %+v", status)
		}
		sim.sendFor(nil, 4*time.Minute)
		sim.mu.Lock()
		tries := len(sim.tries["well.example"])
		sim.mu.Unlock()
		if tries < 6 || tries > 20 {
			t.Errorf("%d messages were tried in five minutes of an outage", tries)
		}
		sim.sendFor(nil, time.Hour)
		if n := sim.count(isHealthy); n < 280 { // the others have used up their attempts
			t.Errorf("it is up again and got %d of 300", n)
		}
		sim.Stop()
	})
}

// TestRetryAfterIsReported counts the messages that are sent during the requested pause.
func TestRetryAfterIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct, s.Connections = true, 1
		var asked time.Time
		sim := newSimulation(t, s, func(_ string, now time.Time) reply {
			if asked.IsZero() {
				asked = now
				refusal := refusing(fanfare.ClassThrottled)
				refusal.RetryAfter = 90 * time.Second
				return reply{0, refusal}
			}
			return reply{0, accepted}
		})
		sim.send(fanfare.Normal, shuffled(50, "well.example"))
		sim.sendFor(nil, 10*time.Minute)
		sim.mu.Lock()
		defer sim.mu.Unlock()
		for _, at := range sim.tries["well.example"][1:] {
			if rest := at.Sub(asked); rest < 90*time.Second {
				t.Fatalf("a message was sent %v after it asked for 90 s of rest", rest)
			}
		}
		if n := sim.accepted["well.example"]; n != 50 {
			t.Errorf("it got %d of 50", n)
		}
		sim.Stop()
	})
}

func TestLeastRecentlyUsedDestinationsAreForgotten(t *testing.T) {
	s := Destinations{}
	var all destinations
	now := time.Now()
	all.configure(&s, firstWindow, now)
	busy := all.of("busy", now)
	busy.active = 1
	for _, name := range named("d", maxDestinations+1000) {
		all.of(name, now)
		all.of("kept", now)
	}
	if n := len(all.known); n > maxDestinations+1 {
		t.Errorf("%d are known, want %d at most", n, maxDestinations)
	}
	if all.known["busy"] != busy || all.known["kept"] == nil || all.known["d0.example"] != nil {
		t.Error("one in use was forgotten, or the oldest was not")
	}
	for i := range maxDestinations {
		all.of(named("e", 1)[0], now.Add(forgetAfter+time.Duration(i)))
	}
	for _, name := range named("f", maxDestinations/10) {
		all.of(name, now.Add(2*forgetAfter))
	}
	if n := len(all.known); n > maxDestinations/5+2 {
		t.Errorf("%d are known an hour later, want those in use", n)
	}
	seen := 0
	for d := all.newest; d != nil; d = d.older {
		seen++
	}
	if seen != len(all.known) {
		t.Errorf("%d are in the list, %d are known", seen, len(all.known))
	}
}

// fakeBudget allows a number of messages until a time, and any number after it.
type fakeBudget struct {
	mu    sync.Mutex
	left  int
	until time.Time
}

func (a *fakeBudget) GroupSize(most int) int { return most }

func (a *fakeBudget) Take(now time.Time, n int, _ bool) (int, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.until) {
		return n, 0
	}
	if a.left == 0 {
		return 0, a.until.Sub(now)
	}
	n = min(n, a.left)
	a.left -= n
	return n, 0
}

func (a *fakeBudget) Refund(_ time.Time, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left += n
}

func (a *fakeBudget) CountsAtSend() bool { return false }

// TestExhaustedBudgetStopsTheChannelUntilItsTime has connections that end after 30 s
// without work: none may be opened before there is some.
func TestExhaustedBudgetStopsTheChannelUntilItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		opens := time.Now().Add(8 * time.Hour)
		s.Budgets = []Budget{&fakeBudget{left: 1000}, &fakeBudget{left: 40, until: opens}}
		sim := newSimulation(t, s, failingDestinations(0))
		batch := sim.send(fanfare.Normal, shuffled(100, "well.example"))
		<-time.After(7 * time.Hour)
		if n := sim.count(isHealthy); n != 40 {
			t.Errorf("%d left of a budget of 40", n)
		}
		<-time.After(2 * time.Hour)
		sim.mustFinish(batch, finished{})
		sim.mu.Lock()
		defer sim.mu.Unlock()
		if at := sim.tries["well.example"][40]; at.Before(opens) || at.Sub(opens) > time.Second {
			t.Errorf("the next left %v after there was a budget again", at.Sub(opens))
		}
		sim.Stop()
	})
}

// TestRefundOfAnUnlimitedShareHasNoEffect adds a budget while connections hold messages
// that were not counted in it.
func TestRefundOfAnUnlimitedShareHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		sim := newSimulation(t, s, func(string, time.Time) reply { return reply{time.Second, accepted} })
		job := &sim.batch(fanfare.Bulk, 1).Jobs[0]
		job.batch = &Batch{}
		o := sim.Sender
		o.limits.begin(nil, job, nil, time.Now())
		budget := &fakeBudget{until: time.Now().Add(time.Hour)}
		s.Budgets = []Budget{budget}
		o.Reconfigure(s)
		o.limits.unsent(job)
		if budget.left != 0 {
			t.Errorf("%d were given back to a budget of which none was spent", budget.left)
		}
		sim.Stop()
	})
}

// TestReadmittedJobKeepsItsDestination changes the site of a domain while its jobs are
// throttled.
func TestReadmittedJobKeepsItsDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		known := false
		s.Destinations = Destinations{
			Each: DestinationLimit{Rate: 10},
			Site: func(name string) string {
				if known {
					return "site.example"
				}
				return name
			},
		}
		sim := newSimulation(t, s, func(string, time.Time) reply { return reply{time.Millisecond, accepted} })
		sim.send(fanfare.Bulk, shuffled(20, "well.example"))
		<-time.After(time.Second / 2)
		sim.Sender.mu.Lock()
		known = true
		sim.Sender.mu.Unlock()
		sim.send(fanfare.Bulk, shuffled(20, "well.example"))
		<-time.After(20 * time.Second)
		if n := sim.count(isHealthy); n != 40 {
			t.Errorf("%d of 40 have left: %+v", n, sim.Status())
		}
		sim.Stop()
	})
}

// TestActiveMessagesDoNotEndASuspension has one of several replies ask for a pause.
func TestActiveMessagesDoNotEndASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct, s.Connections = true, 4
		asked := time.Now()
		var one atomic.Bool
		sim := newSimulation(t, s, func(string, time.Time) reply {
			if one.CompareAndSwap(false, true) {
				refusal := refusing(fanfare.ClassThrottled)
				refusal.RetryAfter = 90 * time.Second
				return reply{time.Millisecond, refusal}
			}
			return reply{100 * time.Millisecond, accepted}
		})
		sim.send(fanfare.Normal, shuffled(10, "well.example"))
		<-time.After(time.Second)
		sim.send(fanfare.Normal, shuffled(10, "well.example"))
		sim.sendFor(nil, 10*time.Minute)
		sim.mu.Lock()
		defer sim.mu.Unlock()
		for _, at := range sim.tries["well.example"] {
			if rest := at.Sub(asked); rest > time.Millisecond && rest < 90*time.Second {
				t.Fatalf("a message was sent %v after it asked for 90 s of rest", rest)
			}
		}
		sim.Stop()
	})
}

// TestRefundOfABudgetReopensTheChannel refunds the last message of a budget after the
// channel was closed for hours.
func TestRefundOfABudgetReopensTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			if held.CompareAndSwap(false, true) {
				message, _ := queue.Next(ctx, true)
				<-time.After(time.Second)
				queue.Return(message)
			}
			return answering(acceptAll)(ctx, queue)
		}))
		s.Budgets = []Budget{&fakeBudget{left: 1, until: time.Now().Add(8 * time.Hour)}}
		f := newFixture(t, gateFunc(allowAll), s)
		f.Submit(f.batch(fanfare.Normal, 2))
		<-time.After(2 * time.Second)
		if n := f.Status().Accepted; n != 1 {
			t.Errorf("%d left of a budget of 1", n)
		}
		f.Stop()
	})
}

// TestAdaptiveChannelRecoversAllConnections has a next hop that asks for less for ten
// seconds and then accepts everything. Each connection has one message at a time, so that
// none asks for more than its lane may have.
func TestAdaptiveChannelRecoversAllConnections(t *testing.T) {
	for _, lane := range fanfare.Lanes {
		for _, reserve := range []Reserve{{}, {Urgent: 0.1, Normal: 0.1}} {
			t.Run(fmt.Sprintf("%v, %+v", lane, reserve), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := settings(nil)
					s.Adapt, s.Connections, s.Reserve, s.Retry = true, 20, reserve, Retry{time.Hour}
					calm := time.Now().Add(10 * time.Second)
					sim := newSimulation(t, s, func(_ string, now time.Time) reply {
						if now.Before(calm) {
							return reply{250 * time.Millisecond, refusing(fanfare.ClassBusy)}
						}
						return reply{250 * time.Millisecond, accepted}
					})
					sim.send(lane, make([]string, 30_000))
					<-time.After(2 * time.Minute)
					sim.mu.Lock()
					sim.most[""] = 0
					sim.mu.Unlock()
					<-time.After(time.Second)
					sim.mu.Lock()
					most := sim.most[""]
					sim.mu.Unlock()
					if want := reserve.laneLimit(lane, s.Connections); most < want-1 {
						t.Errorf("%d at most are under way two minutes later, want %d", most, want)
					}
					sim.Stop()
				})
			})
		}
	}
}

// TestOneDestinationMayUseTheWholeChannel has all messages for one destination, as behind a
// relay of one mailbox provider: a destination with slow replies is not slow, and none of
// its messages is postponed while it has capacity.
func TestOneDestinationMayUseTheWholeChannel(t *testing.T) {
	const answer = 250 * time.Millisecond
	for _, c := range []struct {
		name     string
		direct   bool
		messages int // in rounds of 100
		atOnce   bool
		within   time.Duration
	}{
		{"behind a relay", false, 500, true, 1600 * time.Millisecond},
		{"behind a relay, for long", false, 2000, false, 6 * time.Second},
		{"by connections of its own, of which few are opened at first", true, 500, true, 3 * time.Second},
		{"by connections of its own, for long", true, 2000, false, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settings(nil)
				s.Connections, s.Direct = 100, c.direct
				sim := newSimulation(t, s, func(string, time.Time) reply { return reply{answer, accepted} })
				to := slices.Repeat([]string{"all.example"}, c.messages)
				if c.atOnce {
					sim.send(fanfare.Bulk, to)
					to = nil
				}
				left := sim.sendFor(to, c.within)
				sim.mu.Lock()
				accepted, most := sim.accepted["all.example"], sim.most["all.example"]
				sim.mu.Unlock()
				if len(left) > 0 || accepted != c.messages {
					t.Errorf("%d of %d messages are taken after %v, at most %d were under way at once", accepted, c.messages, c.within, most)
				}
				sim.Stop()
			})
		})
	}
}
