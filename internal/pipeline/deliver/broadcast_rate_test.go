package deliver

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

type fakeBroadcastRates struct {
	mu sync.Mutex
	of map[fanfare.EventRef]*limit.Rate
}

func (f *fakeBroadcastRates) set(event fanfare.EventRef, perSecond float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[fanfare.EventRef]*limit.Rate{}
	}
	if f.of[event] == nil {
		f.of[event] = &limit.Rate{}
	}
	f.of[event].Set(perSecond, time.Now())
}

func (f *fakeBroadcastRates) GroupSize(event fanfare.EventRef, most int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rate := f.of[event]; rate != nil {
		return rate.GroupSize(most), rate.Limited()
	}
	return most, false
}

func (f *fakeBroadcastRates) Take(event fanfare.EventRef, n int, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	rate := f.of[event]
	if rate == nil {
		return 0
	}
	wait := rate.WaitFor(n, false, now)
	if wait == 0 {
		rate.TakeFor(n, now)
	}
	return wait
}

func (f *fakeBroadcastRates) Refund(event fanfare.EventRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rate := f.of[event]; rate != nil {
		rate.Refund()
	}
}

// submitBroadcast submits a batch of one broadcast.
func (f *fixture) submitBroadcast(n int, stream uint64) (*Batch, fanfare.EventRef) {
	batch := f.batch(fanfare.Bulk, n)
	seq := fanfare.NewEventSeq(stream, 0)
	for i := range batch.Jobs {
		batch.Jobs[i].Message.Delivery.Manifest = fanfare.NewManifestID(seq, 0)
	}
	return batch, batch.Jobs[0].event()
}

// sent counts the sent messages of a broadcast.
func (f *fixture) sent(event fanfare.EventRef) int {
	n := 0
	for _, e := range f.book.all() {
		if e.State == fanfare.Accepted && e.Delivery.Manifest.Event() == event.Seq {
			n++
		}
	}
	return n
}

func between(t *testing.T, what string, got, least, most int) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %d, want %d to %d", what, got, least, most)
	}
}

func TestBroadcastKeepsItsRateAndOthersOvertakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		f.options.BroadcastRates = rates
		slow, event := f.submitBroadcast(1000, 5)
		quick, other := f.submitBroadcast(500, 6)
		rates.set(event, 10)
		f.Submit(slow)
		f.Submit(quick)
		synctest.Wait()
		between(t, "at once of the other", f.sent(other), 500, 500)
		between(t, "at once", f.sent(event), 1, 2)
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 10/s", f.sent(event), 97, 101)

		rates.set(event, 100)
		f.BroadcastRatesChanged()
		before := f.sent(event)
		<-time.After(time.Second)
		synctest.Wait()
		between(t, "in the second after it was raised to 100/s", f.sent(event)-before, 95, 101)

		rates.set(event, 1)
		f.BroadcastRatesChanged()
		before = f.sent(event)
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 1/s", f.sent(event)-before, 9, 11)
		if status := f.Status(); status.RateLimited != 1000-f.sent(event) || status.Queued != 0 {
			t.Errorf("%+v", status)
		}

		rates.set(event, -1)
		f.BroadcastRatesChanged()
		synctest.Wait()
		between(t, "without a rate", f.sent(event), 1000, 1000)
		f.mustFinish(slow, finished{})
		f.mustFinish(quick, finished{})
		f.Stop()
	})
}

// The jobs of an unlimited broadcast that wait for the rate of the channel are not counted
// in a rate that the broadcast gets later.
func TestRateSetAgainAppliesToJobsThatWaitForTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		s := settings(answering(acceptAll))
		s.Rate = 100
		f := newFixture(t, gateFunc(allowAll), s)
		f.options.BroadcastRates = rates
		batch, event := f.submitBroadcast(1000, 5)
		rates.set(event, 10)
		f.Submit(batch)
		synctest.Wait()
		rates.set(event, -1)
		f.BroadcastRatesChanged()
		<-time.After(time.Second)
		synctest.Wait()
		rates.set(event, 10)
		f.BroadcastRatesChanged()
		before := f.sent(event)
		<-time.After(5 * time.Second)
		synctest.Wait()
		between(t, "in 5 s at 10/s again", f.sent(event)-before, 48, 51+s.Connections)
		f.Stop()
	})
}

func TestRateOfABroadcastAppliesToAllSendersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		var both [2]*fixture
		var event fanfare.EventRef
		for i := range both {
			both[i] = newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
			both[i].options.BroadcastRates = rates
			var batch *Batch
			batch, event = both[i].submitBroadcast(300, 5)
			rates.set(event, 20)
			both[i].Submit(batch)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 20/s by two channels", both[0].sent(event)+both[1].sent(event), 195, 202)
		for _, f := range both {
			f.Stop()
		}
	})
}

func TestRateLimitedJobsCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		var mu sync.Mutex
		stopped := fanfare.EventRef{}
		gate := gateFunc(func(job *Job) (Decision, string) {
			mu.Lock()
			defer mu.Unlock()
			if job.event() == stopped {
				return Hold, "stopped"
			}
			return Go, ""
		})
		f := newFixture(t, gate, settings(answering(acceptAll)))
		f.options.BroadcastRates = rates
		one, event := f.submitBroadcast(100, 5)
		two, other := f.submitBroadcast(100, 6)
		rates.set(event, 1./60)
		rates.set(other, 1./60)
		f.Submit(one)
		f.Submit(two)
		synctest.Wait()
		mu.Lock()
		stopped = event
		mu.Unlock()
		f.RecheckGate()
		synctest.Wait()
		f.mustFinish(one, finished{held: 100 - f.sent(event)})
		between(t, "of the other still waits", f.Status().RateLimited, 98, 99)
		f.Stop()
		f.mustFinish(two, finished{unsent: 100 - f.sent(other)})
	})
}

func TestRateLimitedJobsCountInTheCapacityOfTheirBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		f.options.BroadcastRates = rates
		batch, event := f.submitBroadcast(fanfare.MaxBatch+10, 5)
		batch.Flow = event
		rates.set(event, 10)
		f.Submit(batch)
		synctest.Wait()
		if f.HasCapacity(fanfare.Bulk, event) || !f.HasCapacity(fanfare.Bulk, flow(6)) {
			t.Error("a rate-limited batch does not count in the capacity of its broadcast, or counts in that of another")
		}
		for start := time.Now(); !f.HasCapacity(fanfare.Bulk, event); {
			<-f.CapacityChanged()
			if time.Since(start) > time.Minute {
				t.Fatal("no capacity after a minute at 10/s")
			}
		}
		f.Stop()
	})
}

// TestRateLimitedSmallBroadcastsDoNotBlockOthers has small broadcasts with a rate, and
// retries of a large one: other small broadcasts find capacity, and the number of
// rate-limited jobs is limited.
func TestRateLimitedSmallBroadcastsDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		f.options.BroadcastRates = rates
		var slow []*Batch
		for i := range 5 {
			batch, event := f.submitBroadcast(900, uint64(10+i))
			rates.set(event, 1.0/60)
			f.Submit(batch)
			slow = append(slow, batch)
			synctest.Wait()
		}
		for _, lane := range fanfare.Lanes {
			if !f.HasCapacity(lane, Flow{}) {
				t.Errorf("rate-limited jobs leave no capacity for small broadcasts in lane %v", lane)
			}
		}
		if n := f.Status().RateLimited; n > maxSmallRateLimited+len(slow) { // one of each always is
			t.Errorf("%d rest at a time, want %d at most", n, maxSmallRateLimited+len(slow))
		}
		f.book.mu.Lock()
		put := len(f.book.dues)
		first, last := time.Duration(1<<62), time.Duration(0)
		for _, due := range f.book.dues {
			first, last = min(first, time.Until(due.At)), max(last, time.Until(due.At))
		}
		f.book.mu.Unlock()
		if put < 3000 {
			t.Errorf("%d jobs were postponed", put)
		}
		if first < time.Minute || last > 20*time.Minute {
			t.Errorf("they come back in %v to %v", first, last)
		}
		f.Stop()
		for _, batch := range slow {
			if _, ok := f.resultOf(batch); !ok {
				t.Error("a batch has not ended")
			}
		}
	})
}

// TestRateSetWhileJobsWaitForTheirDestinationIsKept sets a rate while most jobs of a broadcast wait for
// their destination. A job that is readmitted and must then wait for the rate gives up its place at the
// destination. Otherwise such jobs would hold all places while the jobs before them wait for one.
func TestRateSetWhileJobsWaitForTheirDestinationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &fakeBroadcastRates{}
		s := settings(answering(func(*driver.Message) driver.Verdict {
			<-time.After(50 * time.Millisecond)
			return driver.Accepted
		}))
		s.Connections = 8
		f := newFixture(t, gateFunc(allowAll), s)
		f.options.BroadcastRates = rates
		submit := func() (*Batch, fanfare.EventRef) {
			batch, event := f.submitBroadcast(300, 5)
			for i := range batch.Jobs {
				batch.Jobs[i].Destination = "example.org"
			}
			f.Submit(batch)
			return batch, event
		}
		first, event := submit()
		<-time.After(300 * time.Millisecond)
		if f.Status().Throttled < 200 {
			t.Fatalf("%+v: too few messages wait for their destination", f.Status())
		}
		rates.set(event, 10)
		f.BroadcastRatesChanged()
		second, _ := submit()
		<-time.After(time.Second)
		for range 5 {
			before := f.sent(event)
			<-time.After(10 * time.Second)
			between(t, "in 10 s at 10/s", f.sent(event)-before, 98, 102)
		}
		rates.set(event, -1)
		f.BroadcastRatesChanged()
		<-time.After(10 * time.Second)
		synctest.Wait()
		f.mustFinish(first, finished{})
		f.mustFinish(second, finished{})
		f.Stop()
	})
}
