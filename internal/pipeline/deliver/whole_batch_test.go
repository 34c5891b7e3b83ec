package deliver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A stepDriver delivers batches as a whole, and other messages one by one.
type stepDriver struct {
	driverFunc
	answer func(*driver.Message) driver.Verdict
	during func() // called in each step

	mu    sync.Mutex
	steps []int // sizes
}

func (d *stepDriver) DeliverAll(_ context.Context, messages []*driver.Message) []driver.Outcome {
	d.mu.Lock()
	d.steps = append(d.steps, len(messages))
	d.mu.Unlock()
	if d.during != nil {
		d.during()
	}
	outcomes := make([]driver.Outcome, len(messages))
	for i, m := range messages {
		outcomes[i] = driver.Outcome{Verdict: d.answer(m), Delivered: true, Text: "stored", Relay: "relay:25", At: time.Now()}
	}
	return outcomes
}

func newStepDriver() *stepDriver {
	return &stepDriver{driverFunc: answering(acceptAll), answer: acceptAll}
}

func TestALargeBatchIsDeliveredInOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStepDriver()
		d.answer = func(m *driver.Message) driver.Verdict {
			switch m.Delivery.Position {
			case 1:
				return driver.Temporary
			case 2:
				return driver.Permanent
			}
			return driver.Accepted
		}
		f := newFixture(t, gateFunc(allowAll), settings(d))
		large, small := f.batch(fanfare.Bulk, 100), f.batch(fanfare.Bulk, minWholeBatch-1)
		f.Submit(large)
		f.Submit(small)
		synctest.Wait()
		f.mustFinish(large, finished{})
		f.mustFinish(small, finished{})
		states := f.book.states()
		if states[fanfare.Delivered] != 98 || states[fanfare.Accepted] != minWholeBatch-1 || states[fanfare.Deferred] != 1 || states[fanfare.Failed] != 1 {
			t.Errorf("states %v", states)
		}
		if len(d.steps) != 1 || d.steps[0] != 100 || f.book.together != 1 || len(f.book.dues) != 1 || f.book.dues[0].Slice.Positions[0] != 1 {
			t.Errorf("steps %v, %d commits, retries %+v", d.steps, f.book.together, f.book.dues)
		}
		if n := f.Status().Accepted; n != 98+minWholeBatch-1 {
			t.Errorf("%d messages count as accepted", n)
		}
		f.Stop()
	})
}

func TestAStepHasOnlyWhatTheGateAdmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStepDriver()
		f := newFixture(t, gateFunc(func(job *Job) (Decision, string) {
			switch job.Message.Delivery.Position {
			case 0:
				return Suppress, "unsubscribed"
			case 1:
				return Hold, ""
			case 2:
				return Cancel, "cancelled"
			case 3:
				return Reload, ""
			}
			return Go, ""
		}), settings(d))
		batch := f.batch(fanfare.Bulk, 100)
		batch.Jobs[4].Expires = time.Now().Add(-time.Second)
		batch.Jobs[5].Quiet = QuietPeriod{From: time.Now().Add(-time.Second), Until: time.Now().Add(time.Hour)}
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{held: 1, unsent: 1})
		states := f.book.states()
		if states[fanfare.Delivered] != 94 || states[fanfare.Suppressed] != 1 || states[fanfare.Cancelled] != 1 || states[fanfare.Expired] != 1 || len(f.book.dues) != 1 {
			t.Errorf("states %v, postponed %+v", states, f.book.dues)
		}
		f.Stop()
	})
}

func TestALimitThatCountsMessagesSendsThemOneByOne(t *testing.T) {
	for name, limit := range map[string]func(*Settings, *Batch){
		"rate":          func(s *Settings, _ *Batch) { s.Rate = 1_000_000 },
		"adapt":         func(s *Settings, _ *Batch) { s.Adapt = true },
		"destination":   func(_ *Settings, b *Batch) { b.Jobs[7].Destination = "example.org" },
		"drained relay": func(s *Settings, _ *Batch) { s.Relays[0].Drained = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newStepDriver()
				s := settings(d)
				batch := newFixture(t, gateFunc(allowAll), settings(d)).batch(fanfare.Bulk, 100)
				limit(&s, batch)
				f := newFixture(t, gateFunc(allowAll), s)
				f.Submit(batch)
				<-time.After(time.Minute)
				if want := map[bool]int{true: 0, false: 100}[name == "drained relay"]; len(d.steps) != 0 || f.book.states()[fanfare.Accepted] != want {
					t.Errorf("steps %v, states %v", d.steps, f.book.states())
				}
				f.Stop()
			})
		})
	}
}

func TestAnUnsubscribeWaitsForTheStepThatHasItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStepDriver()
		d.during = func() { <-time.After(10 * time.Second) }
		f := newFixture(t, gateFunc(allowAll), settings(d))
		batch := f.batch(fanfare.Bulk, 100)
		f.Submit(batch)
		synctest.Wait()
		begun := time.Now()
		if err := f.AwaitInFlight(t.Context(), batch.Jobs[50].Subscriptions[0]); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited != 10*time.Second {
			t.Errorf("waited %s", waited)
		}
		f.Stop()
		f.mustFinish(batch, finished{})
	})
}

func TestAStepWhoseOutcomesAreNotRecordedLeavesItsJobsUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(newStepDriver()))
		f.book.refuse = errors.New("the disk is full")
		batch := f.batch(fanfare.Bulk, 100)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{unsent: 100})
		f.Stop()
	})
}

func TestABatchWhoseLeaseEndsIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStepDriver()
		f := newFixture(t, gateFunc(allowAll), settings(d))
		batch := f.batch(fanfare.Bulk, 100)
		batch.LeaseEnd = func() time.Time { return time.Now().Add(time.Second) }
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{unsent: 100})
		if len(d.steps) != 0 {
			t.Errorf("steps %v", d.steps)
		}
		f.Stop()
	})
}

func TestOnlySomeStepsRunAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStepDriver()
		d.during = func() { <-time.After(time.Second) }
		f := newFixture(t, gateFunc(allowAll), settings(d))
		for i := range maxWholeBatches {
			if !f.HasCapacity(fanfare.Bulk, Flow{}) {
				t.Errorf("no capacity for batch %d", i)
			}
			f.Submit(f.batch(fanfare.Bulk, 100))
		}
		if f.HasCapacity(fanfare.Bulk, Flow{}) {
			t.Error("capacity while all steps run")
		}
		<-f.CapacityChanged()
		if !f.HasCapacity(fanfare.Bulk, Flow{}) {
			t.Error("no capacity after a step")
		}
		f.Stop()
	})
}

func TestASenderDeliversWholeBatchesUnlessALimitCountsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(newStepDriver()))
		if !f.DeliversWhole() {
			t.Error("a sender without limits does not deliver whole batches")
		}
		f.SetRate(100)
		if f.DeliversWhole() {
			t.Error("a sender with a rate delivers whole batches")
		}
		f.Stop()
		single := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		if single.DeliversWhole() {
			t.Error("a driver of single messages delivers whole batches")
		}
		single.Stop()
	})
}
