package deliver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// groupSizes records the sizes and times of groups.
type groupSizes struct {
	mu    sync.Mutex
	sizes []int
	at    []time.Time
}

// left returns the sizes and times so far.
func (g *groupSizes) left() (sizes []int, at []time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.sizes), slices.Clone(g.at)
}

// all returns the sizes.
func (g *groupSizes) all() []int {
	sizes, _ := g.left()
	return sizes
}

// answer returns a driver that records groups; its next hop replies after a time.
func (g *groupSizes) answer(after time.Duration) driverFunc {
	return func(ctx context.Context, queue driver.Queue) error {
		for {
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			all := []*driver.Message{message}
			if message.SharedContent != 0 {
				all = queue.TakeSameContent(all, message, 99)
			}
			if _, released := queue.ReleaseAll(all); !released {
				continue
			}
			g.mu.Lock()
			g.sizes, g.at = append(g.sizes, len(all)), append(g.at, time.Now())
			g.mu.Unlock()
			<-time.After(after)
			outcomes := slices.Repeat([]driver.Outcome{{Verdict: driver.Accepted, Code: 250, At: time.Now()}}, len(all))
			if err := queue.ReportAll(all, outcomes); err != nil {
				return err
			}
		}
	}
}

// mostInASecond returns the maximum number of recipients in any one second.
func (g *groupSizes) mostInASecond() (most int) {
	sizes, at := g.left()
	for i := range at {
		n := 0
		for j := i; j < len(at) && at[j].Sub(at[i]) < time.Second; j++ {
			n += sizes[j]
		}
		most = max(most, n)
	}
	return most
}

// newGroupFixture returns a sender that sends in groups; all recipients have one
// destination.
func newGroupFixture(t *testing.T, after time.Duration, change func(*Settings)) (*fixture, *groupSizes) {
	g := &groupSizes{}
	s := settings(g.answer(after))
	s.Connections, s.Multicast = 1, 100
	change(&s)
	return newFixture(t, gateFunc(allowAll), s), g
}

// submitToOne submits a batch of messages with the same content to one destination.
func (f *fixture) submitToOne(lane fanfare.Lane, n int) *Batch {
	batch := f.submitSameContent(Flow{}, lane, repeat(1, n)...)
	for i := range batch.Jobs {
		batch.Jobs[i].Destination = "example.org"
	}
	return batch
}

func TestSharedContentIsSentInGroupsThatTheRateAllows(t *testing.T) {
	const fast, slow = 5 * time.Millisecond, 400 * time.Millisecond
	for _, c := range []struct {
		perSecond   int // 0: no limit
		connections int
		after       time.Duration
		group       int
		within      time.Duration
	}{
		{30, 1, fast, 30, 33500 * time.Millisecond}, {30, 4, fast, 30, 33500 * time.Millisecond},
		{30, 1, slow, 30, 34 * time.Second}, {30, 4, slow, 30, 34 * time.Second},
		{600, 1, fast, 100, 1600 * time.Millisecond}, {600, 4, fast, 100, 1600 * time.Millisecond},
		{600, 1, slow, 100, 4100 * time.Millisecond}, {600, 2, slow, 100, 2200 * time.Millisecond},
		{250, 1, fast, 84, 4 * time.Second}, {250, 4, fast, 84, 4 * time.Second}, // 83, 83, 84
		{3000, 1, fast, 100, 400 * time.Millisecond}, {3000, 4, fast, 100, 400 * time.Millisecond},
		{3000, 1, slow, 100, 4100 * time.Millisecond}, {3000, 2, slow, 100, 2100 * time.Millisecond},
		{0, 1, fast, 100, 60 * time.Millisecond}, {0, 2, slow, 100, 2100 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d/s, %d connections, %v", c.perSecond, c.connections, c.after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, g := newGroupFixture(t, c.after, func(s *Settings) {
					s.Connections = c.connections
					if c.perSecond > 0 {
						s.Rate = rateLimit(float64(c.perSecond))
					}
				})
				batch := f.submitToOne(fanfare.Normal, 1000)
				f.Submit(batch)
				<-time.After(c.within)
				f.mustFinish(batch, finished{})
				if full := (1000 + c.group - 1) / c.group; len(g.all()) != full {
					t.Errorf("%d messages left, %d are full: %v", len(g.all()), full, g.all())
				}
				if most := g.mostInASecond(); c.perSecond > 0 && most > c.perSecond {
					t.Errorf("%d left in one second, of %d", most, c.perSecond)
				}
				f.Stop()
			})
		})
	}
}

// TestUrgentMessageDoesNotWaitForAGroup has every connection wait until the rate allows a
// whole group.
func TestUrgentMessageDoesNotWaitForAGroup(t *testing.T) {
	for _, connections := range []int{1, 4} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, g := newGroupFixture(t, time.Millisecond, func(s *Settings) { s.Rate, s.Connections = 30, connections })
				f.Submit(f.submitToOne(fanfare.Bulk, 300))
				<-time.After(1500 * time.Millisecond) // while a group waits
				for range 5 {
					came := time.Now()
					urgent := f.batch(fanfare.Urgent, 1)
					f.Submit(urgent)
					<-time.After(40 * time.Millisecond)
					synctest.Wait()
					f.mustFinish(urgent, finished{})
					sizes, at := g.left()
					if last := len(at) - 1; at[last].Sub(came) > 34*time.Millisecond || sizes[last] != 1 {
						t.Errorf("%v after an urgent message %d left together", at[last].Sub(came), sizes[last])
					}
				}
				<-time.After(12 * time.Second)
				grouped := slices.DeleteFunc(g.all(), func(n int) bool { return n == 1 })
				if !slices.Equal(grouped, repeatInt(30, 10)) {
					t.Errorf("groups of %v left beside urgent messages, want ten of 30", grouped)
				}
				f.Stop()
			})
		})
	}
}

func repeatInt(value, n int) []int { return slices.Repeat([]int{value}, n) }

func TestSendersWithASharedRateSendInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared limit.SharedRate
		shared.Set(100, time.Now())
		var all [2]*groupSizes
		var both [2]*fixture
		var batches [2]*Batch
		for i := range both {
			both[i], all[i] = newGroupFixture(t, time.Millisecond, func(s *Settings) { s.Budgets = []Budget{shared.NewShare()} })
			batches[i] = both[i].submitToOne(fanfare.Normal, 500)
			both[i].Submit(batches[i])
		}
		<-time.After(11 * time.Second)
		for i, f := range both {
			f.mustFinish(batches[i], finished{})
			if !slices.Equal(all[i].all(), repeatInt(100, 5)) {
				t.Errorf("channel %d of two at 100/s together sent groups of %v", i, all[i].all())
			}
			f.Stop()
		}
	})
}

// TestBroadcastWithRateIsSentInGroups has a broadcast with a rate below that of the
// channel.
func TestBroadcastWithRateIsSentInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		f, g := newGroupFixture(t, time.Millisecond, func(s *Settings) { s.Rate = 600 })
		f.options.BroadcastRates = rates
		batch, event := f.submitBroadcast(300, 5)
		for i := range batch.Jobs {
			batch.Jobs[i].Message.SharedContent = 1
		}
		rates.set(event, 50)
		f.Submit(batch)
		<-time.After(6 * time.Second)
		f.mustFinish(batch, finished{})
		if !slices.Equal(g.all(), repeatInt(50, 6)) || g.mostInASecond() > 50 {
			t.Errorf("groups of %v left at 50/s, %d in one second", g.all(), g.mostInASecond())
		}
		f.Stop()
	})
}

// TestDestinationWithRateGetsGroups has recipients of a destination with a rate among
// others.
func TestDestinationWithRateGetsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := newGroupFixture(t, time.Millisecond, func(s *Settings) {
			s.Destinations.Only = map[string]DestinationLimit{"slow.example": {Rate: 20}}
		})
		batch := f.submitToOne(fanfare.Normal, 160)
		for i := range 80 {
			batch.Jobs[2*i].Destination = "slow.example"
		}
		f.Submit(batch)
		<-time.After(5 * time.Second)
		f.mustFinish(batch, finished{})
		// The timer of the destination may fire when one of its recipients waits and the
		// other 79 were not examined yet: that one is sent with the 80.
		if !slices.Equal(g.all(), []int{80, 20, 20, 20, 20}) && !slices.Equal(g.all(), []int{81, 20, 20, 20, 19}) {
			t.Errorf("groups of %v left, want the 80 without a rate, and 20 in each second", g.all())
		}
		f.Stop()
	})
}

// TestGroupCountsOncePerDestination has groups whose recipients all have a destination with
// two active messages at most. While a connection collects a group of 100, the others may take
// some of its recipients, each as a group of one: the race detector has seen 7 of them.
func TestGroupCountsOncePerDestination(t *testing.T) {
	const reply = 400 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		f, g := newGroupFixture(t, reply, func(s *Settings) {
			s.Connections, s.Destinations.Each = 4, DestinationLimit{Connections: 2}
		})
		batch := f.submitToOne(fanfare.Normal, 1000)
		f.Submit(batch)
		<-time.After(4 * 10 * reply)
		f.mustFinish(batch, finished{})
		sizes, at := g.left()
		large := slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n < 90 })
		if len(large) != 10 || len(sizes) > 4*10 {
			t.Errorf("groups of %v left", sizes)
		}
		for i := 2; i < len(at); i++ {
			if at[i].Sub(at[i-2]) < reply {
				t.Errorf("groups %d to %d were active at once", i-2, i)
			}
		}
		if d := f.limits.destinations.known["example.org"]; d.active != 0 {
			t.Errorf("%d are counted as under way to it", d.active)
		}
		f.Stop()
	})
}

// TestLastGroupOfADayIsSmaller has a quota that ends in the middle of a group.
func TestLastGroupOfADayIsSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		granted := int64(0)
		var q *limit.Quota
		q = limit.NewQuota(250, time.UTC, func(day string, block int64) {
			n := min(block, 250-granted)
			granted += n
			time.AfterFunc(time.Millisecond, func() { q.Grant(day, block, n) })
		})
		f, g := newGroupFixture(t, time.Millisecond, func(s *Settings) { s.Budgets = []Budget{q} })
		batch := f.submitToOne(fanfare.Normal, 1000)
		f.Submit(batch)
		<-time.After(time.Second)
		if !slices.Equal(g.all(), []int{100, 100, 50}) {
			t.Errorf("groups of %v left of a quota of 250", g.all())
		}
		f.Stop()
	})
}

// TestUnusedReservationOfAGroupIsRefunded has a next hop that accepts fewer recipients than
// the rate has counted.
func TestUnusedReservationOfAGroupIsRefunded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		f, _ := newGroupFixture(t, 0, func(s *Settings) {
			s.Relays = relaysOf(together(20, &sizes, acceptEach))
			s.Rate, s.Budgets = 100, []Budget{&fakeBudget{left: 400, until: time.Now().Add(time.Hour)}}
		})
		batch := f.submitToOne(fanfare.Normal, 400)
		f.Submit(batch)
		<-time.After(5 * time.Second)
		f.mustFinish(batch, finished{})
		if !slices.Equal(sizes, repeatInt(20, 20)) {
			t.Errorf("groups of %v left", sizes)
		}
		f.Stop()
	})
}
