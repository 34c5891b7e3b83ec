package deliver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestUnreachableRelayUsesUpNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		reachable := time.Now().Add(10 * time.Minute)
		f := newFixture(t, gateFunc(allowAll), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			dials.Add(1)
			if time.Now().Before(reachable) {
				return errors.New("connection refused")
			}
			return answering(acceptAll)(ctx, queue)
		})))
		batch := f.batch(fanfare.Normal, 200)
		f.Submit(batch)
		<-time.After(9 * time.Minute)
		if n := dials.Load(); n < 10 || n > 60 {
			t.Errorf("%d connections were tried in 9 minutes of an outage", n)
		}
		if status := f.Status(); status.LastError != "connection refused" || status.LastErrorAt.IsZero() || status.Queued != 200 {
			t.Errorf("the outage does not show: %+v", status)
		}
		<-time.After(2 * time.Minute)
		f.mustFinish(batch, finished{})
		for _, e := range f.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 {
				t.Fatalf("an attempt was consumed: %+v", e)
			}
		}
		if status := f.Status(); status.LastError != "" {
			t.Errorf("the error stays after a success: %+v", status)
		}
		f.Stop()
	})
}

// TestRelayThatDropsEveryMessageDoesNotGetTheWholeQueue checks promise 2: each dropped
// message may become a duplicate.
func TestRelayThatDropsEveryMessageDoesNotGetTheWholeQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			if message == nil || !queue.Release(message) {
				return err
			}
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Lost, Text: "cut off", At: time.Now()}); err != nil {
				return err
			}
			return errors.New("cut off")
		})))
		batch := f.batch(fanfare.Normal, 500)
		f.Submit(batch)
		<-time.After(5 * time.Minute)
		if n := len(f.book.all()); n < 5 || n > 60 {
			t.Errorf("%d messages were begun in 5 minutes with a relay that drops each", n)
		}
		f.Stop()
	})
}

func TestDriverPanicCountsAsBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			if l.Delivery.Position == 1 && panics == 0 {
				panics++
				panic("a bug")
			}
			return driver.Accepted
		}))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Normal, 5)
		f.Submit(batch)
		<-time.After(time.Hour)
		f.mustFinish(batch, finished{})
		for _, e := range f.book.all() {
			want := fanfare.Accepted
			if e.Delivery.Position == 1 { // its body was begun: the next hop may have it
				want = fanfare.Deferred
				if !strings.Contains(e.Text, "a bug") {
					t.Errorf("the reason is lost: %q", e.Text)
				}
			}
			if e.State != want {
				t.Errorf("position %d is %s, want %s", e.Delivery.Position, e.State, want)
			}
		}
		if err := f.AwaitInFlight(t.Context(), batch.Jobs[1].Subscriptions[0]); err != nil {
			t.Errorf("it is still on the wire: %v", err)
		}
		f.Stop()
	})
}

func TestMessageThatBreaksEveryConnectionDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			for message != nil {
				if message.Delivery.Position == 0 {
					panic("a bug before the body")
				}
				if queue.Release(message) {
					err = queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()})
					if err != nil {
						return err
					}
				}
				message, err = queue.Next(ctx, true)
			}
			return err
		})))
		batch := f.batch(fanfare.Normal, 20)
		f.Submit(batch)
		<-time.After(time.Hour)
		f.mustFinish(batch, finished{})
		if got := f.book.states(); got[fanfare.Accepted] != 19 || got[fanfare.Deferred] != 1 {
			t.Errorf("recorded %v, want 19 accepted and 1 deferred", got)
		}
		f.Stop()
	})
}

func TestReturnedMessageGoesToAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		giveBack := make(chan struct{})
		s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			mu.Lock()
			calls++
			first := calls == 1
			mu.Unlock()
			if !first {
				return answering(acceptAll)(ctx, queue)
			}
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			<-giveBack
			queue.Return(message)
			<-ctx.Done() // it ends without an error, but late
			return nil
		}))
		s.Connections = 2
		f := newFixture(t, gateFunc(allowAll), s)
		first := f.batch(fanfare.Normal, 1)
		f.Submit(first)
		synctest.Wait()
		second := f.batch(fanfare.Normal, 1) // opens the other connection, which is idle then
		f.Submit(second)
		synctest.Wait()
		close(giveBack)
		synctest.Wait()
		f.mustFinish(first, finished{})
		f.mustFinish(second, finished{})
		f.Stop()
	})
}

func TestIdleConnectionIsClosedAndReplacedOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		for range 3 {
			batch := f.batch(fanfare.Normal, 10)
			f.Submit(batch)
			synctest.Wait()
			f.mustFinish(batch, finished{})
			if n := f.Status().Connections; n < 1 || n > 4 {
				t.Errorf("%d connections at work, want 1 to 4", n)
			}
			<-time.After(31 * time.Second)
			if n := f.Status().Connections; n != 0 {
				t.Errorf("%d connections after the idle time-out", n)
			}
		}
		f.Stop()
	})
}

func TestNewSettingsApplyAfterTheMessageInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old, fresh atomic.Int32
		reply := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-reply; old.Add(1); return driver.Accepted }))
		s.Connections = 2
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Normal, 50)
		f.Submit(batch)
		synctest.Wait()
		s.Relays = relaysOf(answering(func(*driver.Message) driver.Verdict { fresh.Add(1); return driver.Accepted }))
		f.Reconfigure(s)
		synctest.Wait()
		if n := f.Status().Connections; n != 2 {
			t.Errorf("%d connections while the old ones finish, want 2", n)
		}
		close(reply)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		if old.Load() != 2 || fresh.Load() != 48 {
			t.Errorf("the old driver sent %d and the new one %d, want 2 and 48", old.Load(), fresh.Load())
		}
		f.Stop()
	})
}

func TestNewSettingsEndThePauseOfARelayInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(driverFunc(func(context.Context, driver.Queue) error { return errors.New("wrong password") })))
		batch := f.batch(fanfare.Normal, 3)
		f.Submit(batch)
		<-time.After(10 * time.Minute)
		f.Reconfigure(settings(answering(acceptAll)))
		synctest.Wait()
		f.mustFinish(batch, finished{})
		f.Stop()
	})
}

func TestMessageIsReportedOnceEvenIfTheDriverRepeatsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			if message == nil || !queue.Release(message) {
				return err
			}
			for range 3 {
				err = queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()})
				queue.Return(message)
			}
			return err
		})))
		batch := f.batch(fanfare.Normal, 3)
		f.Submit(batch)
		<-time.After(time.Hour)
		f.mustFinish(batch, finished{})
		if n := len(f.book.all()); n != 3 {
			t.Errorf("%d entries, want 3", n)
		}
		f.Stop()
	})
}

// TestConnectionPrefetchesTheNextMessageUnlessThereIsARate checks what pipelining needs:
// only with the next message can a connection send its envelope together with the previous
// body.
func TestConnectionPrefetchesTheNextMessageUnlessThereIsARate(t *testing.T) {
	for name, c := range map[string]struct {
		rate  rate.Limit
		ahead bool
	}{
		"unlimited": {rate.Inf, true},
		"a rate":    {1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan bool, 1)
				s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
					first, err := queue.Next(ctx, true)
					if first == nil {
						return err
					}
					second, _ := queue.Next(ctx, false)
					got <- second != nil
					<-ctx.Done()
					for _, message := range []*driver.Message{second, first} {
						if message != nil {
							queue.Return(message)
						}
					}
					return nil
				}))
				s.Rate, s.Connections = c.rate, 1
				f := newFixture(t, gateFunc(allowAll), s)
				f.Submit(f.batch(fanfare.Normal, 10))
				if ahead := <-got; ahead != c.ahead {
					t.Errorf("the connection had a message ahead: %v, want %v", ahead, c.ahead)
				}
				f.Stop()
			})
		})
	}
}
