package deliver

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestReserveIsAtLeastOneConnectionAndLeavesOneToEachLane(t *testing.T) {
	for _, c := range []struct {
		connections    int
		reserve        Reserve
		urgent, normal int
		bulk           int
	}{
		{50, Reserve{}, 50, 50, 50},
		{50, Reserve{Urgent: 0.1}, 50, 45, 45},
		{50, Reserve{Normal: 0.1}, 50, 50, 45},
		{50, Reserve{0.1, 0.2}, 50, 45, 35},
		{50, Reserve{0.05, 0.05}, 50, 48, 46},
		{4, Reserve{0.05, 0.05}, 4, 3, 2},
		{2, Reserve{0.05, 0.05}, 2, 1, 1},
		{1, Reserve{0.05, 0.05}, 1, 1, 1},
		{10, Reserve{1, 1}, 10, 1, 1},
		{0, Reserve{0.5, 0.5}, 1, 1, 1},
	} {
		t.Run(fmt.Sprintf("%d %+v", c.connections, c.reserve), func(t *testing.T) {
			most := func(lane fanfare.Lane) int { return c.reserve.laneLimit(lane, c.connections) }
			if u, n, b := most(fanfare.Urgent), most(fanfare.Normal), most(fanfare.Bulk); u != c.urgent || n != c.normal || b != c.bulk {
				t.Errorf("urgent may have %d, normal %d, bulk %d, want %d, %d, %d", u, n, b, c.urgent, c.normal, c.bulk)
			}
		})
	}
}

// slowly returns a driver that takes a minute for each message, and prefetches the next
// one.
func slowly(dials *atomic.Int32) driverFunc {
	return func(ctx context.Context, queue driver.Queue) error {
		dials.Add(1)
		var next *driver.Message
		for {
			message, err := next, error(nil)
			if message == nil {
				message, err = queue.Next(ctx, true)
			}
			if message == nil {
				return err
			}
			next, _ = queue.Next(ctx, false)
			if !queue.Release(message) {
				continue
			}
			<-time.After(time.Minute)
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
				return err
			}
		}
	}
}

// TestUrgentFindsAFreeConnectionWhileAllOthersAreSlow fills the connections of bulk and of
// normal: an urgent message is sent at once.
func TestUrgentFindsAFreeConnectionWhileAllOthersAreSlow(t *testing.T) {
	for _, before := range []time.Duration{0, time.Second, 90 * time.Second, 10 * time.Minute} {
		t.Run(before.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				s := settings(slowly(&dials))
				s.Connections, s.Reserve = 10, Reserve{Urgent: 0.2, Normal: 0.1}
				f := newFixture(t, gateFunc(allowAll), s)
				wire := func(want [3]int) {
					t.Helper()
					synctest.Wait()
					f.Sender.mu.Lock()
					defer f.Sender.mu.Unlock()
					var got [3]int
					for _, job := range f.inFlight {
						got[job.batch.Lane]++
					}
					if got != want {
						t.Errorf("on the wire are %v (urgent, normal, bulk), want %v", got, want)
					}
				}
				f.Submit(f.batch(fanfare.Bulk, 500))
				<-time.After(before)
				wire([3]int{0, 0, 7})
				f.Submit(f.batch(fanfare.Normal, 500))
				wire([3]int{0, 1, 7})
				first := f.batch(fanfare.Urgent, 1)
				f.Submit(first)
				wire([3]int{1, 1, 7})
				f.Submit(f.batch(fanfare.Urgent, 1))
				wire([3]int{2, 1, 7})
				<-time.After(2 * time.Minute)
				f.mustFinish(first, finished{})
				if status := f.Status(); status.Connections > s.Connections {
					t.Errorf("%d connections of %d", status.Connections, s.Connections)
				}
				f.Stop()
			})
		})
	}
}

// TestOneSpareConnectionIsKeptOpen counts connections while bulk uses all that it may.
func TestOneSpareConnectionIsKeptOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		s := settings(slowly(&dials))
		s.Connections, s.Reserve = 20, Reserve{Urgent: 0.25, Normal: 0.25}
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Bulk, 200)
		f.Submit(batch)
		for range 10 {
			<-time.After(61 * time.Second)
			synctest.Wait()
			if status := f.Status(); status.Connections != 11 || status.InFlight != 10 {
				t.Errorf("%d connections and %d messages on the wire, want 11 and 10", status.Connections, status.InFlight)
			}
		}
		if n := dials.Load(); n > 11+2*10 {
			t.Errorf("%d connections were made in 10 minutes", n) // an idle connection ends after half a minute
		}
		<-time.After(time.Hour)
		f.mustFinish(batch, finished{})
		if status := f.Status(); status.Connections != 0 {
			t.Errorf("%d connections are left when nothing is to be sent", status.Connections)
		}
		f.Stop()
	})
}

// TestFreedReserveIsUsed breaks the one connection that bulk may use.
func TestFreedReserveIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			if message == nil || !queue.Release(message) {
				return err
			}
			<-time.After(time.Second)
			sent.Add(1)
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
				return err
			}
			return fmt.Errorf("cut off")
		}))
		s.Connections, s.Reserve = 2, Reserve{Urgent: 0.5}
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Bulk, 10)
		f.Submit(batch)
		<-time.After(12 * time.Second)
		if n := sent.Load(); n < 10 {
			t.Errorf("%d of 10 were sent in 12 s, a second each", n)
		}
		f.mustFinish(batch, finished{})
		f.Stop()
	})
}

// TestFailoverJobIsTakenWhenItsLaneHasCapacity has a relay refuse a message and use the
// connections of its lane for another one, before the other relay looks.
func TestFailoverJobIsTakenWhenItsLaneHasCapacity(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			refusing := driverFunc(func(ctx context.Context, queue driver.Queue) error {
				message, _ := queue.Next(ctx, true)
				if message == nil {
					return nil
				}
				<-time.After(20 * time.Millisecond)
				busy := driver.Outcome{Verdict: driver.Temporary, Code: 421, At: time.Now()}
				if !queue.Failover(message, busy) {
					t.Error("the message could not be passed on")
				}
				if message, _ = queue.Next(ctx, false); message != nil && queue.Release(message) {
					<-time.After(time.Second)
					if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
						t.Error(err)
					}
				}
				return answering(acceptAll)(ctx, queue)
			})
			late := driverFunc(func(ctx context.Context, queue driver.Queue) error {
				<-time.After(10 * time.Millisecond)
				return answering(acceptAll)(ctx, queue)
			})
			s := settings(nil)
			s.Connections, s.Reserve = 2, Reserve{Urgent: 0.5}
			s.Relays = []RelaySettings{{Name: "a", Driver: refusing, Weight: 1}, {Name: "b", Driver: late, Weight: 1}}
			f := newFixture(t, gateFunc(allowAll), s)
			batch := f.batch(fanfare.Bulk, 2)
			f.Submit(batch)
			<-time.After(5 * time.Second)
			if _, ok := f.resultOf(batch); !ok {
				t.Errorf("it waits for a connection to end: %+v", f.Status())
			}
			f.Stop()
		})
	}
}
