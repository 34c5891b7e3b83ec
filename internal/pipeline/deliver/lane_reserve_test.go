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

func TestAReserveIsAConnectionAtLeastAndLeavesOneToEach(t *testing.T) {
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

// slowly is a driver that takes a minute for each message, and takes the next one
// in hand meanwhile, as one that groups does.
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

// TestUrgentFindsAFreeConnectionWhileAllOthersAreSlow is what a reserve is for:
// bulk fills its part, and normal its own, and what is urgent leaves at once.
func TestUrgentFindsAFreeConnectionWhileAllOthersAreSlow(t *testing.T) {
	for _, before := range []time.Duration{0, time.Second, 90 * time.Second, 10 * time.Minute} {
		t.Run(before.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				s := settings(slowly(&dials))
				s.Connections, s.Reserve = 10, Reserve{Urgent: 0.2, Normal: 0.1}
				b := newBench(t, gateFunc(open), s)
				wire := func(want [3]int) {
					t.Helper()
					synctest.Wait()
					b.Sender.mu.Lock()
					defer b.Sender.mu.Unlock()
					var got [3]int
					for _, job := range b.inFlight {
						got[job.batch.Lane]++
					}
					if got != want {
						t.Errorf("on the wire are %v (urgent, normal, bulk), want %v", got, want)
					}
				}
				b.Submit(b.batch(fanfare.Bulk, 500))
				<-time.After(before)
				wire([3]int{0, 0, 7})
				b.Submit(b.batch(fanfare.Normal, 500))
				wire([3]int{0, 1, 7})
				first := b.batch(fanfare.Urgent, 1)
				b.Submit(first)
				wire([3]int{1, 1, 7})
				b.Submit(b.batch(fanfare.Urgent, 1))
				wire([3]int{2, 1, 7})
				<-time.After(2 * time.Minute)
				b.mustEnd(first, ending{})
				if status := b.Status(); status.Connections > s.Connections {
					t.Errorf("%d connections of %d", status.Connections, s.Connections)
				}
				b.Stop()
			})
		})
	}
}

// TestTheSpareConnectionIsOneAndKept counts connections while bulk has all that it
// may have.
func TestTheSpareConnectionIsOneAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		s := settings(slowly(&dials))
		s.Connections, s.Reserve = 20, Reserve{Urgent: 0.25, Normal: 0.25}
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Bulk, 200)
		b.Submit(batch)
		for range 10 {
			<-time.After(61 * time.Second)
			synctest.Wait()
			if status := b.Status(); status.Connections != 11 || status.InFlight != 10 {
				t.Errorf("%d connections and %d messages on the wire, want 11 and 10", status.Connections, status.InFlight)
			}
		}
		if n := dials.Load(); n > 11+2*10 {
			t.Errorf("%d connections were made in 10 minutes", n) // an idle one ends after half a minute
		}
		<-time.After(time.Hour)
		b.mustEnd(batch, ending{})
		if status := b.Status(); status.Connections != 0 {
			t.Errorf("%d connections are left when nothing is to be sent", status.Connections)
		}
		b.Stop()
	})
}

// TestAPartThatBecomesFreeIsUsed has the one connection that bulk may have break.
func TestAPartThatBecomesFreeIsUsed(t *testing.T) {
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
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Bulk, 10)
		b.Submit(batch)
		<-time.After(12 * time.Second)
		if n := sent.Load(); n < 10 {
			t.Errorf("%d of 10 were sent in 12 s, a second each", n)
		}
		b.mustEnd(batch, ending{})
		b.Stop()
	})
}

// TestWhatWasPassedOnIsTakenWhenItsLaneHasRoomAgain has a relay refuse a message and
// take the part of its lane for another one, before the other relay looks.
func TestWhatWasPassedOnIsTakenWhenItsLaneHasRoomAgain(t *testing.T) {
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
				return answering(taking)(ctx, queue)
			})
			late := driverFunc(func(ctx context.Context, queue driver.Queue) error {
				<-time.After(10 * time.Millisecond)
				return answering(taking)(ctx, queue)
			})
			s := settings(nil)
			s.Connections, s.Reserve = 2, Reserve{Urgent: 0.5}
			s.Relays = []RelaySettings{{Name: "a", Driver: refusing, Weight: 1}, {Name: "b", Driver: late, Weight: 1}}
			b := newBench(t, gateFunc(open), s)
			batch := b.batch(fanfare.Bulk, 2)
			b.Submit(batch)
			<-time.After(5 * time.Second)
			if _, ok := b.ended(batch); !ok {
				t.Errorf("it waits for a connection to end: %+v", b.Status())
			}
			b.Stop()
		})
	}
}
