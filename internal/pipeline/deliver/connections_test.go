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

func TestARelayThatCannotBeReachedConsumesNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		reachable := time.Now().Add(10 * time.Minute)
		b := newBench(t, gateFunc(open), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			dials.Add(1)
			if time.Now().Before(reachable) {
				return errors.New("connection refused")
			}
			return answering(taking)(ctx, queue)
		})))
		batch := b.batch(fanfare.Normal, 200)
		b.Submit(batch)
		<-time.After(9 * time.Minute)
		if n := dials.Load(); n < 10 || n > 60 {
			t.Errorf("%d connections were tried in 9 minutes of an outage", n)
		}
		if status := b.Status(); status.LastError != "connection refused" || status.LastErrorAt.IsZero() || status.Queued != 200 {
			t.Errorf("the outage does not show: %+v", status)
		}
		<-time.After(2 * time.Minute)
		b.mustEnd(batch, ending{})
		for _, e := range b.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 {
				t.Fatalf("an attempt was consumed: %+v", e)
			}
		}
		if status := b.Status(); status.LastError != "" {
			t.Errorf("the error stays after a success: %+v", status)
		}
		b.Stop()
	})
}

// TestARelayThatDropsEveryMessageIsNotFedTheWholeQueue is about promise 2: each
// drop may be a duplicate later.
func TestARelayThatDropsEveryMessageIsNotFedTheWholeQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			if message == nil || !queue.Release(message) {
				return err
			}
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Lost, Text: "cut off", At: time.Now()}); err != nil {
				return err
			}
			return errors.New("cut off")
		})))
		batch := b.batch(fanfare.Normal, 500)
		b.Submit(batch)
		<-time.After(5 * time.Minute)
		if n := len(b.book.all()); n < 5 || n > 60 {
			t.Errorf("%d messages were begun in 5 minutes with a relay that drops each", n)
		}
		b.Stop()
	})
}

func TestAPanicOfADriverIsABrokenConnection(t *testing.T) {
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
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 5)
		b.Submit(batch)
		<-time.After(time.Hour)
		b.mustEnd(batch, ending{})
		for _, e := range b.book.all() {
			want := fanfare.Accepted
			if e.Delivery.Position == 1 { // its body was begun: the next hop may have it or not
				want = fanfare.Deferred
				if !strings.Contains(e.Text, "a bug") {
					t.Errorf("the reason is lost: %q", e.Text)
				}
			}
			if e.State != want {
				t.Errorf("position %d is %s, want %s", e.Delivery.Position, e.State, want)
			}
		}
		if err := b.AwaitInFlight(t.Context(), batch.Jobs[1].Subscriptions[0]); err != nil {
			t.Errorf("it is still on the wire: %v", err)
		}
		b.Stop()
	})
}

func TestALetterThatBringsDownEveryConnectionDoesNotBlockTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
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
		batch := b.batch(fanfare.Normal, 20)
		b.Submit(batch)
		<-time.After(time.Hour)
		b.mustEnd(batch, ending{})
		if got := b.book.states(); got[fanfare.Accepted] != 19 || got[fanfare.Deferred] != 1 {
			t.Errorf("recorded %v, want 19 accepted and 1 deferred", got)
		}
		b.Stop()
	})
}

func TestAReturnedMessageGoesToAConnectionThatIsIdle(t *testing.T) {
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
				return answering(taking)(ctx, queue)
			}
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			<-giveBack
			queue.Return(message)
			<-ctx.Done() // it ends in peace, but late
			return nil
		}))
		s.Connections = 2
		b := newBench(t, gateFunc(open), s)
		first := b.batch(fanfare.Normal, 1)
		b.Submit(first)
		synctest.Wait()
		second := b.batch(fanfare.Normal, 1) // brings the other connection up, which is idle then
		b.Submit(second)
		synctest.Wait()
		close(giveBack)
		synctest.Wait()
		b.mustEnd(first, ending{})
		b.mustEnd(second, ending{})
		b.Stop()
	})
}

func TestAnIdleConnectionIsClosedAndAnotherOneOpenedWhenItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		for range 3 {
			batch := b.batch(fanfare.Normal, 10)
			b.Submit(batch)
			synctest.Wait()
			b.mustEnd(batch, ending{})
			if n := b.Status().Connections; n < 1 || n > 4 {
				t.Errorf("%d connections at work, want 1 to 4", n)
			}
			<-time.After(31 * time.Second)
			if n := b.Status().Connections; n != 0 {
				t.Errorf("%d connections after the idle time-out", n)
			}
		}
		b.Stop()
	})
}

func TestNewSettingsTakeOverAfterTheMessageOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old, fresh atomic.Int32
		reply := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-reply; old.Add(1); return driver.Accepted }))
		s.Connections = 2
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 50)
		b.Submit(batch)
		synctest.Wait()
		s.Relays = relaysOf(answering(func(*driver.Message) driver.Verdict { fresh.Add(1); return driver.Accepted }))
		b.Reconfigure(s)
		synctest.Wait()
		if n := b.Status().Connections; n != 2 {
			t.Errorf("%d connections while the old ones finish, want 2", n)
		}
		close(reply)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		if old.Load() != 2 || fresh.Load() != 48 {
			t.Errorf("the old driver sent %d and the new one %d, want 2 and 48", old.Load(), fresh.Load())
		}
		b.Stop()
	})
}

func TestNewSettingsEndThePauseOfARelayInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(driverFunc(func(context.Context, driver.Queue) error { return errors.New("wrong password") })))
		batch := b.batch(fanfare.Normal, 3)
		b.Submit(batch)
		<-time.After(10 * time.Minute)
		b.Reconfigure(settings(answering(taking)))
		synctest.Wait()
		b.mustEnd(batch, ending{})
		b.Stop()
	})
}

func TestALetterIsReportedOnceHoweverOftenADriverSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
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
		batch := b.batch(fanfare.Normal, 3)
		b.Submit(batch)
		<-time.After(time.Hour)
		b.mustEnd(batch, ending{})
		if n := len(b.book.all()); n != 3 {
			t.Errorf("%d entries, want 3", n)
		}
		b.Stop()
	})
}

// TestAConnectionHasTheNextMessageInHandUnlessARateIsKept is about the half of the
// speed: only with the next message in hand can a connection write its envelope
// with the body before.
func TestAConnectionHasTheNextMessageInHandUnlessARateIsKept(t *testing.T) {
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
				b := newBench(t, gateFunc(open), s)
				b.Submit(b.batch(fanfare.Normal, 10))
				if ahead := <-got; ahead != c.ahead {
					t.Errorf("the connection had a message ahead: %v, want %v", ahead, c.ahead)
				}
				b.Stop()
			})
		})
	}
}
