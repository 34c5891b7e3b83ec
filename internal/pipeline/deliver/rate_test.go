package deliver

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestRateIsKeptAndUsedUp(t *testing.T) {
	for _, c := range []struct {
		name        string
		perSecond   float64
		connections int
		jobs        int
	}{
		{"one connection", 10, 1, 100},
		{"more connections than messages a second", 5, 50, 100},
		{"less than one a second", 0.5, 4, 20},
		{"many a second", 500, 8, 2000},
		{"what a provider takes", 360, 90, 3600},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var left []time.Time
				s := settings(answering(func(*driver.Message) driver.Verdict {
					mu.Lock()
					defer mu.Unlock()
					left = append(left, time.Now())
					return driver.Accepted
				}))
				s.Rate, s.Connections = rateLimit(c.perSecond), c.connections
				f := newFixture(t, gateFunc(allowAll), s)
				start := time.Now()
				batch := f.batch(fanfare.Normal, c.jobs)
				f.Submit(batch)
				<-time.After(time.Hour)
				f.mustFinish(batch, finished{})
				slices.SortFunc(left, time.Time.Compare)
				most := int(math.Ceil(c.perSecond)) // in any one second, wherever it begins
				for i := most; i < len(left); i++ {
					if span := left[i].Sub(left[i-most]); span < time.Second {
						t.Fatalf("%d messages left within %v at %v a second", most+1, span, c.perSecond)
					}
				}
				took := left[len(left)-1].Sub(start).Seconds()
				if ideal := float64(c.jobs-1) / c.perSecond; took > ideal*1.011 {
					t.Errorf("%d messages took %.2f s, the rate allows them in %.2f s", c.jobs, took, ideal)
				}
				f.Stop()
			})
		})
	}
}

// TestUrgentDoesNotQueueForTheRateBehindBulk has more connections than messages per second;
// all of them wait for the rate when an urgent message arrives.
func TestUrgentDoesNotQueueForTheRateBehindBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		left := map[uint32]time.Time{}
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			mu.Lock()
			defer mu.Unlock()
			left[l.Delivery.Position] = time.Now()
			return driver.Accepted
		}))
		s.Rate, s.Connections = 1, 50
		f := newFixture(t, gateFunc(allowAll), s)
		f.Submit(f.batch(fanfare.Bulk, 500))
		<-time.After(10 * time.Second)
		came := time.Now()
		urgent := f.batch(fanfare.Urgent, 1)
		f.Submit(urgent)
		<-time.After(5 * time.Second)
		mu.Lock()
		at, ok := left[urgent.Jobs[0].Message.Delivery.Position]
		mu.Unlock()
		if !ok || at.Sub(came) > time.Second+time.Millisecond {
			t.Errorf("the urgent message left %v after it came (%v), one second is enough for the next to leave", at.Sub(came), ok)
		}
		f.Stop()
	})
}

func TestNonBlockingNextDoesNotWaitForTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Rate, s.Connections = 1, 0
		f := newFixture(t, gateFunc(allowAll), s)
		f.Submit(f.batch(fanfare.Normal, 2))
		q := newConnQueue(f.Sender, f.relays[0])
		q.busyLane = idleLane
		start := time.Now()
		first, err := q.Next(t.Context(), false)
		if first == nil || err != nil {
			t.Fatalf("the first is due at once: %v, %v", first, err)
		}
		second, err := q.Next(t.Context(), false)
		if second != nil || err != nil || !time.Now().Equal(start) {
			t.Fatalf("the second is not due yet: %v, %v after %v", second, err, time.Since(start))
		}
		second, err = q.Next(t.Context(), true)
		if second == nil || err != nil || time.Since(start) < time.Second {
			t.Fatalf("the second is due after a second: %v, %v after %v", second, err, time.Since(start))
		}
		q.abandon(nil)
		f.Stop()
	})
}
