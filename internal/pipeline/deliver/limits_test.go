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

// sick behaves by the name of a destination; who is called well is.
func sick(dead time.Duration) func(string, time.Time) reply {
	return func(to string, _ time.Time) reply {
		switch {
		case strings.HasPrefix(to, "dead"):
			return reply{dead, driver.Outcome{Verdict: driver.Lost, Text: "timed out", Class: fanfare.ClassNetwork}}
		case strings.HasPrefix(to, "slow"):
			return reply{2 * time.Second, taken}
		case strings.HasPrefix(to, "busy"):
			return reply{5 * time.Millisecond, refusing(fanfare.ClassThrottled)}
		}
		return reply{25 * time.Millisecond, taken}
	}
}

func isWell(to string) bool { return strings.HasPrefix(to, "well") }

// TestTheHealthyDoNotFeelTheSick sends to a thousand destinations, of which ten
// are dead, ten slow, and ten answer that there is too much, and compares the time
// that the healthy take with that of a run without the sick.
func TestTheHealthyDoNotFeelTheSick(t *testing.T) {
	for _, c := range []struct {
		name        string
		direct      bool
		dead        time.Duration
		connections int
		least       float64 // of their rate without the sick
	}{
		{"webhooks, dead ones time out", true, 10 * time.Second, 20, 0.95},
		{"mail by a relay, dead ones are refused", false, 5 * time.Millisecond, 50, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(t *testing.T, others []string) (taken int) {
				synctest.Test(t, func(t *testing.T) {
					s := settings(nil)
					s.Direct, s.Connections, s.Retry = c.direct, c.connections, Retry{time.Minute, time.Minute}
					w := newTown(t, s, sick(c.dead))
					rest := w.work(shuffled(30, append(named("well", 970), others...)...), 4*time.Second)
					before := w.took(isWell) // once it is known who is sick
					if rest = w.work(rest, 6*time.Second); len(rest) == 0 {
						t.Error("there was nothing left to send")
					}
					taken = w.took(isWell) - before
					w.Stop()
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

// TestWhatOneDestinationIsLimitedToHoldsUpNoOther has a destination with a rate
// and one with few connections, beside one without limits.
func TestWhatOneDestinationIsLimitedToHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Connections = 20
		s.Destinations = Destinations{
			Each: DestinationLimit{Connections: 12},
			Only: map[string]DestinationLimit{"paced.example": {Rate: 10}, "narrow.example": {Connections: 2}},
		}
		w := newTown(t, s, sick(0))
		start := time.Now()
		w.work(append(append(shuffled(200, "paced.example"), shuffled(500, "narrow.example")...), shuffled(3000, "well.example")...), 10*time.Second)
		if n := w.took(isWell); n != 3000 {
			t.Errorf("the one without limits got %d of 3000 within 10 s", n)
		}
		w.work(nil, 2*time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		for to, want := range map[string]int{"paced.example": 200, "narrow.example": 500, "well.example": 3000} {
			if w.accepted[to] != want {
				t.Errorf("%s got %d of %d", to, w.accepted[to], want)
			}
		}
		tries := w.tries["paced.example"]
		for i := 10; i < len(tries); i++ {
			if span := tries[i].Sub(tries[i-10]); span < time.Second {
				t.Fatalf("eleven messages within %v at 10 a second", span)
			}
		}
		if took := tries[len(tries)-1].Sub(start); took > 25*time.Second {
			t.Errorf("200 messages at 10 a second took %v", took)
		}
		if w.most["narrow.example"] != 2 || w.most["well.example"] > 12 {
			t.Errorf("%d were under way to one that takes 2, %d to one that takes 12", w.most["narrow.example"], w.most["well.example"])
		}
		w.Stop()
	})
}

// TestASuspendedDestinationIsProbedByOneAndHoldsNothing has a destination that is
// down for five minutes.
func TestASuspendedDestinationIsProbedByOneAndHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct = true
		up := time.Now().Add(5 * time.Minute)
		w := newTown(t, s, func(to string, now time.Time) reply {
			if now.Before(up) {
				return sick(time.Second)("dead", now)
			}
			return reply{time.Millisecond, taken}
		})
		batch := w.send(fanfare.Normal, shuffled(300, "well.example"))
		w.work(nil, time.Minute)
		if _, ok := w.ended(batch); !ok {
			t.Error("its jobs are in the outlet still")
		}
		if status := w.Status(); status.Queued+status.Throttled+status.InFlight > 1 {
			t.Errorf("what is suspended holds %+v", status)
		}
		w.work(nil, 4*time.Minute)
		w.mu.Lock()
		tries := len(w.tries["well.example"])
		w.mu.Unlock()
		if tries < 6 || tries > 20 {
			t.Errorf("%d messages were tried in five minutes of an outage", tries)
		}
		w.work(nil, time.Hour)
		if n := w.took(isWell); n < 280 { // the others have used up their attempts
			t.Errorf("it is up again and got %d of 300", n)
		}
		w.Stop()
	})
}

// TestARetryAfterOfAReceiverIsKept counts what is sent while it asked for rest.
func TestARetryAfterOfAReceiverIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct, s.Connections = true, 1
		var asked time.Time
		w := newTown(t, s, func(_ string, now time.Time) reply {
			if asked.IsZero() {
				asked = now
				refusal := refusing(fanfare.ClassThrottled)
				refusal.RetryAfter = 90 * time.Second
				return reply{0, refusal}
			}
			return reply{0, taken}
		})
		w.send(fanfare.Normal, shuffled(50, "well.example"))
		w.work(nil, 10*time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, at := range w.tries["well.example"][1:] {
			if rest := at.Sub(asked); rest < 90*time.Second {
				t.Fatalf("a message was sent %v after it asked for 90 s of rest", rest)
			}
		}
		if n := w.accepted["well.example"]; n != 50 {
			t.Errorf("it got %d of 50", n)
		}
		w.Stop()
	})
}

func TestTheOnesThatWereNotUsedForLongestAreForgotten(t *testing.T) {
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

// allowance is a budget of so many messages until a time, from when on there is
// no bound.
type allowance struct {
	mu    sync.Mutex
	left  int
	until time.Time
}

func (a *allowance) GroupSize(most int) int { return most }

func (a *allowance) Take(now time.Time, n int, _ bool) (int, time.Duration) {
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

func (a *allowance) Refund(_ time.Time, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left += n
}

func (a *allowance) CountsAtSend() bool { return false }

// TestASpentBudgetClosesTheChannelUntilItsTime has connections that end after 30 s
// without work: none may be opened again before there is some.
func TestASpentBudgetClosesTheChannelUntilItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		opens := time.Now().Add(8 * time.Hour)
		s.Budgets = []Budget{&allowance{left: 1000}, &allowance{left: 40, until: opens}}
		w := newTown(t, s, sick(0))
		batch := w.send(fanfare.Normal, shuffled(100, "well.example"))
		<-time.After(7 * time.Hour)
		if n := w.took(isWell); n != 40 {
			t.Errorf("%d left of a budget of 40", n)
		}
		<-time.After(2 * time.Hour)
		w.mustEnd(batch, ending{})
		w.mu.Lock()
		defer w.mu.Unlock()
		if at := w.tries["well.example"][40]; at.Before(opens) || at.Sub(opens) > time.Second {
			t.Errorf("the next left %v after there was a budget again", at.Sub(opens))
		}
		w.Stop()
	})
}

// TestWhatWasSpentOfNothingIsNotGivenBack has a budget come into force while messages
// are in hand that were not of it.
func TestWhatWasSpentOfNothingIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		w := newTown(t, s, func(string, time.Time) reply { return reply{time.Second, taken} })
		job := &w.batch(fanfare.Bulk, 1).Jobs[0]
		job.batch = &Batch{}
		o := w.Sender
		o.limits.begin(nil, job, nil, time.Now())
		budget := &allowance{until: time.Now().Add(time.Hour)}
		s.Budgets = []Budget{budget}
		o.Reconfigure(s)
		o.limits.unsent(job)
		if budget.left != 0 {
			t.Errorf("%d were given back to a budget of which none was spent", budget.left)
		}
		w.Stop()
	})
}

// TestAJobThatWasAsideStaysWithWhomItWaitedFor has the site of a domain become known
// while its jobs stand aside.
func TestAJobThatWasAsideStaysWithWhomItWaitedFor(t *testing.T) {
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
		w := newTown(t, s, func(string, time.Time) reply { return reply{time.Millisecond, taken} })
		w.send(fanfare.Bulk, shuffled(20, "well.example"))
		<-time.After(time.Second / 2)
		w.Sender.mu.Lock()
		known = true
		w.Sender.mu.Unlock()
		w.send(fanfare.Bulk, shuffled(20, "well.example"))
		<-time.After(20 * time.Second)
		if n := w.took(isWell); n != 40 {
			t.Errorf("%d of 40 have left: %+v", n, w.Status())
		}
		w.Stop()
	})
}

// TestASuspensionIsNotEndedByWhatWasUnderWay has one of several answers ask for rest.
func TestASuspensionIsNotEndedByWhatWasUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Direct, s.Connections = true, 4
		asked := time.Now()
		var one atomic.Bool
		w := newTown(t, s, func(string, time.Time) reply {
			if one.CompareAndSwap(false, true) {
				refusal := refusing(fanfare.ClassThrottled)
				refusal.RetryAfter = 90 * time.Second
				return reply{time.Millisecond, refusal}
			}
			return reply{100 * time.Millisecond, taken}
		})
		w.send(fanfare.Normal, shuffled(10, "well.example"))
		<-time.After(time.Second)
		w.send(fanfare.Normal, shuffled(10, "well.example"))
		w.work(nil, 10*time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, at := range w.tries["well.example"] {
			if rest := at.Sub(asked); rest > time.Millisecond && rest < 90*time.Second {
				t.Fatalf("a message was sent %v after it asked for 90 s of rest", rest)
			}
		}
		w.Stop()
	})
}

// TestWhatIsGivenBackToABudgetOpensTheChannel has the last message of a budget given
// back after the channel was closed for hours.
func TestWhatIsGivenBackToABudgetOpensTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			if held.CompareAndSwap(false, true) {
				message, _ := queue.Next(ctx, true)
				<-time.After(time.Second)
				queue.Return(message)
			}
			return answering(taking)(ctx, queue)
		}))
		s.Budgets = []Budget{&allowance{left: 1, until: time.Now().Add(8 * time.Hour)}}
		b := newBench(t, gateFunc(open), s)
		b.Submit(b.batch(fanfare.Normal, 2))
		<-time.After(2 * time.Second)
		if n := b.Status().Accepted; n != 1 {
			t.Errorf("%d left of a budget of 1", n)
		}
		b.Stop()
	})
}

// TestAChannelThatAdaptsComesBackToAllItsConnections has a next hop that asks for
// less for ten seconds and takes everything from then on. Each connection has one
// message at a time, so that none asks for more than its lane may have.
func TestAChannelThatAdaptsComesBackToAllItsConnections(t *testing.T) {
	for _, lane := range fanfare.Lanes {
		for _, reserve := range []Reserve{{}, {Urgent: 0.1, Normal: 0.1}} {
			t.Run(fmt.Sprintf("%v, %+v", lane, reserve), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := settings(nil)
					s.Adapt, s.Connections, s.Reserve, s.Retry = true, 20, reserve, Retry{time.Hour}
					calm := time.Now().Add(10 * time.Second)
					w := newTown(t, s, func(_ string, now time.Time) reply {
						if now.Before(calm) {
							return reply{250 * time.Millisecond, refusing(fanfare.ClassBusy)}
						}
						return reply{250 * time.Millisecond, taken}
					})
					w.send(lane, make([]string, 30_000))
					<-time.After(2 * time.Minute)
					w.mu.Lock()
					w.most[""] = 0
					w.mu.Unlock()
					<-time.After(time.Second)
					w.mu.Lock()
					most := w.most[""]
					w.mu.Unlock()
					if want := reserve.laneLimit(lane, s.Connections); most < want-1 {
						t.Errorf("%d at most are under way two minutes later, want %d", most, want)
					}
					w.Stop()
				})
			})
		}
	}
}

// TestOneDestinationMayHaveTheWholeChannel has all messages for one destination, as a
// relay sees them whose people are all at one mailbox provider: a next hop whose
// every answer takes a while is not slow, and what it has room for is not put off.
func TestOneDestinationMayHaveTheWholeChannel(t *testing.T) {
	const answer = 250 * time.Millisecond
	for _, c := range []struct {
		name     string
		direct   bool
		messages int // in rounds of 100
		atOnce   bool
		within   time.Duration
	}{
		{"behind a relay", false, 500, true, 1500 * time.Millisecond},
		{"behind a relay, for long", false, 2000, false, 6 * time.Second},
		{"by connections of its own, of which few are opened at first", true, 500, true, 3 * time.Second},
		{"by connections of its own, for long", true, 2000, false, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settings(nil)
				s.Connections, s.Direct = 100, c.direct
				w := newTown(t, s, func(string, time.Time) reply { return reply{answer, taken} })
				to := slices.Repeat([]string{"all.example"}, c.messages)
				if c.atOnce {
					w.send(fanfare.Bulk, to)
					to = nil
				}
				left := w.work(to, c.within)
				w.mu.Lock()
				accepted, most := w.accepted["all.example"], w.most["all.example"]
				w.mu.Unlock()
				if len(left) > 0 || accepted != c.messages {
					t.Errorf("%d of %d messages are taken after %v, at most %d were under way at once", accepted, c.messages, c.within, most)
				}
				w.Stop()
			})
		})
	}
}
