package deliver

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestNothingIsSentForASubscriptionAfterAwaitInFlight ends subscriptions while their
// messages are sent: the gate is closed and AwaitInFlight called. From then on no body for
// the subscription may be begun or in flight (promise 3).
func TestNothingIsSentForASubscriptionAfterAwaitInFlight(t *testing.T) {
	const jobs = 8000
	var ended, acknowledged [jobs]atomic.Bool
	var broken, suppressed atomic.Int64
	drv := driverFunc(func(ctx context.Context, queue driver.Queue) error {
		for {
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			if !queue.Release(message) {
				suppressed.Add(1)
				continue
			}
			for range message.Delivery.Position % 4 { // the body is being written
				runtime.Gosched()
			}
			if acknowledged[message.Delivery.Position].Load() {
				broken.Add(1)
			}
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
				return err
			}
		}
	})
	gate := func(job *Job) (Decision, string) {
		if ended[job.Subscriptions[0]].Load() {
			return Suppress, "unsubscribed"
		}
		return Go, ""
	}
	s := settings(drv)
	s.Connections = 16
	f := newFixture(t, gateFunc(gate), s)
	var enders sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		enders.Go(func() {
			for place := next.Add(1) - 1; place < jobs; place = next.Add(1) - 1 {
				ended[place].Store(true)
				if err := f.AwaitInFlight(t.Context(), fanfare.RowID(place)); err != nil {
					t.Error(err)
				}
				acknowledged[place].Store(true)
				runtime.Gosched()
			}
		})
	}
	var done sync.WaitGroup
	for range jobs / 500 {
		for more := f.CapacityChanged(); !f.HasCapacity(fanfare.Normal, Flow{}); more = f.CapacityChanged() {
			<-more
		}
		batch := f.batch(fanfare.Normal, 500)
		finish := batch.Finish
		done.Add(1)
		batch.Finish = func(held, again int) { finish(held, again); done.Done() }
		f.Submit(batch)
	}
	enders.Wait()
	done.Wait()
	f.Stop()
	if n := broken.Load(); n > 0 {
		t.Errorf("%d messages were on the wire after their subscription's end was acknowledged", n)
	}
	got := f.book.states()
	if got[fanfare.Accepted]+got[fanfare.Suppressed] != jobs {
		t.Errorf("recorded %v, want %d in all", got, jobs)
	}
}

func TestAwaitInFlightWaitsOnlyForTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		f := newFixture(t, gateFunc(allowAll), settings(answering(func(*driver.Message) driver.Verdict { <-reply; return driver.Accepted })))
		batch := f.batch(fanfare.Normal, 2)
		batch.Jobs[0].Subscriptions = []fanfare.RowID{100, 101, 102}
		f.Submit(batch)
		synctest.Wait()
		if err := f.AwaitInFlight(t.Context(), 999); err != nil {
			t.Errorf("one that has nothing on the wire: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.AwaitInFlight(short, 101); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a message is on the wire: %v", err)
		}
		off := make(chan error, 2)
		for range cap(off) {
			go func() { off <- f.AwaitInFlight(t.Context(), 101) }()
		}
		synctest.Wait()
		close(reply)
		for range cap(off) {
			if err := <-off; err != nil {
				t.Error(err)
			}
		}
		f.Stop()
	})
}
