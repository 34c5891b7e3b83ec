package deliver

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// flowRates are the rates of some broadcasts.
type flowRates struct {
	mu sync.Mutex
	of map[fanfare.EventRef]*limit.Rate
}

func (f *flowRates) set(event fanfare.EventRef, perSecond float64) {
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

func (f *flowRates) GroupSize(event fanfare.EventRef, most int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rate := f.of[event]; rate != nil {
		return rate.GroupSize(most), rate.Limited()
	}
	return most, false
}

func (f *flowRates) Take(event fanfare.EventRef, n int, now time.Time) time.Duration {
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

func (f *flowRates) Refund(event fanfare.EventRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rate := f.of[event]; rate != nil {
		rate.Refund()
	}
}

// cast is a batch of one broadcast.
func (b *bench) cast(n int, stream uint64) (*Batch, fanfare.EventRef) {
	batch := b.batch(fanfare.Bulk, n)
	seq := fanfare.NewEventSeq(stream, 0)
	for i := range batch.Jobs {
		batch.Jobs[i].Message.Delivery.Manifest = fanfare.NewManifestID(seq, 0)
	}
	return batch, batch.Jobs[0].event()
}

// sent counts what left of a broadcast.
func (b *bench) sent(event fanfare.EventRef) int {
	n := 0
	for _, e := range b.book.all() {
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

func TestABroadcastLeavesAtItsRateAndOthersPassIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.options.BroadcastRates = rates
		slow, event := b.cast(1000, 5)
		quick, other := b.cast(500, 6)
		rates.set(event, 10)
		b.Submit(slow)
		b.Submit(quick)
		synctest.Wait()
		between(t, "at once of the other", b.sent(other), 500, 500)
		between(t, "at once", b.sent(event), 1, 2)
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 10/s", b.sent(event), 97, 101)

		rates.set(event, 100)
		b.BroadcastRatesChanged()
		before := b.sent(event)
		<-time.After(time.Second)
		synctest.Wait()
		between(t, "in the second after it was raised to 100/s", b.sent(event)-before, 95, 101)

		rates.set(event, 1)
		b.BroadcastRatesChanged()
		before = b.sent(event)
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 1/s", b.sent(event)-before, 9, 11)
		if s := b.Status(); s.RateLimited != 1000-b.sent(event) || s.Queued != 0 {
			t.Errorf("%+v", s)
		}

		rates.set(event, -1)
		b.BroadcastRatesChanged()
		synctest.Wait()
		between(t, "without a rate", b.sent(event), 1000, 1000)
		b.mustEnd(slow, ending{})
		b.mustEnd(quick, ending{})
		b.Stop()
	})
}

// What an unlimited broadcast has queued behind the channel's own rate has no part in
// a rate that it gets again.
func TestARateThatIsTakenBackAndSetAgainHoldsForWhatWaitsForTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
		s := settings(answering(taking))
		s.Rate = 100
		b := newBench(t, gateFunc(open), s)
		b.options.BroadcastRates = rates
		batch, event := b.cast(1000, 5)
		rates.set(event, 10)
		b.Submit(batch)
		synctest.Wait()
		rates.set(event, -1)
		b.BroadcastRatesChanged()
		<-time.After(time.Second)
		synctest.Wait()
		rates.set(event, 10)
		b.BroadcastRatesChanged()
		before := b.sent(event)
		<-time.After(5 * time.Second)
		synctest.Wait()
		between(t, "in 5 s at 10/s again", b.sent(event)-before, 48, 51+s.Connections)
		b.Stop()
	})
}

func TestTheRateOfABroadcastIsForAllOutletsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
		var both [2]*bench
		var event fanfare.EventRef
		for i := range both {
			both[i] = newBench(t, gateFunc(open), settings(answering(taking)))
			both[i].options.BroadcastRates = rates
			var batch *Batch
			batch, event = both[i].cast(300, 5)
			rates.set(event, 20)
			both[i].Submit(batch)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		between(t, "in 10 s at 20/s by two channels", both[0].sent(event)+both[1].sent(event), 195, 202)
		for _, b := range both {
			b.Stop()
		}
	})
}

func TestWhatWaitsForItsRateIsStoppedAndGivenBackLikeAllElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
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
		b := newBench(t, gate, settings(answering(taking)))
		b.options.BroadcastRates = rates
		one, event := b.cast(100, 5)
		two, other := b.cast(100, 6)
		rates.set(event, 1./60)
		rates.set(other, 1./60)
		b.Submit(one)
		b.Submit(two)
		synctest.Wait()
		mu.Lock()
		stopped = event
		mu.Unlock()
		b.RecheckGate()
		synctest.Wait()
		b.mustEnd(one, ending{held: 100 - b.sent(event)})
		between(t, "of the other still waits", b.Status().RateLimited, 98, 99)
		b.Stop()
		b.mustEnd(two, ending{again: 100 - b.sent(other)})
	})
}

func TestWhatRestsTakesTheRoomOfItsBroadcastUntilItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.options.BroadcastRates = rates
		batch, event := b.cast(fanfare.MaxBatch+10, 5)
		batch.Flow = event
		rates.set(event, 10)
		b.Submit(batch)
		synctest.Wait()
		if b.HasRoom(fanfare.Bulk, event) || !b.HasRoom(fanfare.Bulk, flow(6)) {
			t.Error("a batch that rests takes no room of its broadcast, or that of another")
		}
		for start := time.Now(); !b.HasRoom(fanfare.Bulk, event); {
			<-b.RoomSignal()
			if time.Since(start) > time.Minute {
				t.Fatal("no room after a minute at 10/s")
			}
		}
		b.Stop()
	})
}

// TestSmallBroadcastsThatRestHoldUpNothingSmall has small broadcasts at a rate of
// their own, and retries of a large one: there is room for what is small besides, and
// what rests is bounded.
func TestSmallBroadcastsThatRestHoldUpNothingSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := &flowRates{}
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.options.BroadcastRates = rates
		var slow []*Batch
		for i := range 5 {
			batch, event := b.cast(900, uint64(10+i))
			rates.set(event, 1.0/60)
			b.Submit(batch)
			slow = append(slow, batch)
			synctest.Wait()
		}
		for _, lane := range fanfare.Lanes {
			if !b.HasRoom(lane, Flow{}) {
				t.Errorf("what rests leaves no room for what is small in the lane %v", lane)
			}
		}
		if n := b.Status().RateLimited; n > maxSmallRateLimited+len(slow) { // one of each always does
			t.Errorf("%d rest at a time, want %d at most", n, maxSmallRateLimited+len(slow))
		}
		b.book.mu.Lock()
		put := len(b.book.dues)
		first, last := time.Duration(1<<62), time.Duration(0)
		for _, due := range b.book.dues {
			first, last = min(first, time.Until(due.At)), max(last, time.Until(due.At))
		}
		b.book.mu.Unlock()
		if put < 3000 {
			t.Errorf("%d are put off", put)
		}
		if first < time.Minute || last > 20*time.Minute {
			t.Errorf("they come back in %v to %v", first, last)
		}
		b.Stop()
		for _, batch := range slow {
			if _, ok := b.ended(batch); !ok {
				t.Error("a batch has not ended")
			}
		}
	})
}
